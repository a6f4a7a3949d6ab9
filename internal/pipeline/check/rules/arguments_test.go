package rules

import (
	"slices"
	"testing"
)

// TestReadArguments checks that files, hosts and critical commands in arguments are found by their keys, in whatever
// form a command is written.
func TestReadArguments(t *testing.T) {
	a := ReadArguments("deploy", []byte(`{"filePath":"a/b.txt","targets":[{"destination":"c"}],"note":"see https://Example.org/x","command":"ls","args":["-la","/tmp"]}`))
	if !slices.Equal(a.Files, []string{"a/b.txt", "c"}) || !slices.Equal(a.Domains, []string{"example.org"}) || !slices.Equal(a.Commands, []string{"ls -la /tmp"}) || a.Critical != "" {
		t.Errorf("%+v", a)
	}
	for _, c := range []struct {
		tool, arguments string
		critical        bool
	}{
		{"run_command", `{"command":"rm -rf /"}`, true},
		{"run_command", `{"command":"rm","args":["-rf","/var"]}`, true},
		{"run_command", `{"command":["rm","-rf","build"]}`, true},
		{"run_command", `{"cmd":"sudo reboot"}`, true},
		{"x", `{"options":{"script":"cd /tmp\nsudo id"}}`, true},
		{"x", `{"command":"dd if=/dev/zero of=/dev/sda"}`, true},
		{"x", `{"command":"mkfs.ext4 /dev/sda1"}`, true},
		{"x", `{"command":"chmod 777 /srv"}`, true},
		{"x", `{"command":"bash -c 'rm -rf ~'"}`, true},
		{"x", `{"command":"bash","args":["-c","sudo id"]}`, true},
		{"x", `{"c\u006fmmand":"r\u006d -rf /"}`, true},
		{"execute", `{"line":"rm -rf /"}`, true},
		{"bash", `{"input":"rm -rf /"}`, true},
		{"x", `{"command":"ls -la"}`, false},
		{"x", `{"command":"echo rm"}`, false},
		{"x", `{"command":"git push --force"}`, false},
		{"create_issue", `{"title":"sudo rm -rf / does not work","body":"rm -rf /"}`, false},
		{"x", `not JSON`, false},
	} {
		if got := ReadArguments(c.tool, []byte(c.arguments)).Critical; (got != "") != c.critical {
			t.Errorf("%s %s: critical %q, want %v", c.tool, c.arguments, got, c.critical)
		}
	}
}
