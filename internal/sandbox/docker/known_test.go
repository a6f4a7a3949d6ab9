package docker

import (
	"strings"
	"testing"
)

func TestKnownHoles(t *testing.T) {
	for _, test := range []struct {
		component, version string
		// want lists substrings of the expected description. If it is empty, no vulnerability may be found.
		want []string
	}{
		{"runc", "1.1.5+ds1", []string{"runc 1.1.5+ds1", "CVE-2024-21626", "CVE-2025-31133", "1.2.8 or 1.3.3 or 1.4.0 or later"}},
		{"runc", "1.1.13", []string{"CVE-2024-45310"}},
		{"runc", "1.2.7", []string{"CVE-2025-31133"}},
		{"runc", "1.3.2", []string{"CVE-2025-31133"}},
		{"runc", "1.4.0-rc.1", []string{"CVE-2025-31133"}},
		{"runc", "1.0.0-rc6", []string{"CVE-2019-5736", "CVE-2021-30465"}},
		{"runc", "1.2.8", nil},
		{"runc", "v1.3.3", nil},
		{"runc", "1.4.0", nil},
		{"runc", "2.0.0", nil},
		{"containerd", "1.6.20~ds1", []string{"CVE-2024-40635"}},
		{"containerd", "v1.7.27", nil},
		{"docker desktop", "4.43.2 (199162)", []string{"CVE-2025-9074"}},
		{"runc", "unknown", nil},
		{"crun", "0.1", nil},
	} {
		got := knownVulnerabilities(map[string]string{test.component: test.version})
		if len(test.want) == 0 && got != "" {
			t.Errorf("%s %s: %s", test.component, test.version, got)
		}
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s %s: %q lacks %s", test.component, test.version, got, want)
			}
		}
	}
	if got := knownVulnerabilities(map[string]string{"runc": "1.1.13"}); strings.Contains(got, "CVE-2024-21626") {
		t.Errorf("mended holes are named: %s", got)
	}
}
