//go:build unix

package engine_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retort/internal/admin"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/doctor"
	"retort/internal/engine"
)

// newStderrServer returns a server that writes a text to standard error and exits.
func newStderrServer(text string, code int) engine.Server {
	return engine.Server{Command: "sh", Args: []string{"-c", fmt.Sprintf("printf '%%s\\n' \"$0\" >&2; exit %d", code), text}}
}

// newFixedServer returns a server that answers every request in the same way.
func newFixedServer(t *testing.T, status int, kind, body string) engine.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return engine.Server{URL: s.URL + "/mcp"}
}

// newCertifiedServer returns an HTTPS server whose certificate is for the given host and expires at the given time.
func newCertifiedServer(t *testing.T, host string, until time.Time) engine.Server {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until, DNSNames: []string{host}}
	if ip := net.ParseIP(host); ip != nil {
		c.DNSNames, c.IPAddresses = nil, []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return engine.Server{URL: s.URL + "/mcp"}
}

// listenSilently returns an address that accepts connections and never sends anything.
func listenSilently(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// writeProgramFile writes a program file, executable or not, and returns its path.
func writeProgramFile(t *testing.T, text string, mode os.FileMode) string {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDoctorFindsCauses checks, for servers that fail in each of the usual ways, the cause that Doctor finds and a
// part of the fix that it suggests.
func TestDoctorFindsCauses(t *testing.T) {
	home := t.TempDir() // that of the person, with a program where no PATH leads
	t.Setenv("HOME", home)
	if err := os.MkdirAll(filepath.Join(home, ".local/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".local/bin/hidden-tool"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	dir := t.TempDir()
	empty := t.TempDir() // a PATH with nothing in it
	bare := func(command string) engine.Server {
		return engine.Server{Command: command, Env: map[string]string{"PATH": empty}}
	}
	cases := []struct {
		cause, mend string
		server      engine.Server
	}{
		{"command_not_found", "install Node.js", bare("npx")},
		{"command_not_found", "astral.sh/uv", bare("uvx")},
		{"command_not_found", "docs.docker.com", bare("docker")},
		{"command_not_found", "install no-such-tool", bare("no-such-tool")},
		{"command_not_found", "correct command", engine.Server{Command: "/no/such/tool"}},
		{"not_in_path", ".local/bin/hidden-tool", bare("hidden-tool")},
		{"no_directory", "mkdir -p " + dir + "/gone", engine.Server{Command: "sh", Dir: dir + "/gone"}},
		{"no_directory", "cwd", engine.Server{Command: "sh", Dir: writeProgramFile(t, "", 0o600)}},
		{"not_executable", "chmod +x", engine.Server{Command: writeProgramFile(t, "#!/bin/sh\n", 0o600)}},
		{"not_a_program", "file ", engine.Server{Command: writeProgramFile(t, "\x7fELF\x00\x00\x00", 0o700)}},
		{"no_interpreter", "head -1", engine.Server{Command: writeProgramFile(t, "#!/no/such/shell\n", 0o700)}},

		{"node_too_old", "nvm install", newStderrServer("npm WARN EBADENGINE Unsupported engine { required: { node: '>=20' } }", 1)},
		{"node_too_old", "nvm install", newStderrServer("ReferenceError: fetch is not defined\n    at file:///x.js:3:1\nNode.js v16.20.2", 1)},
		{"node_too_old", "nvm install", newStderrServer("SyntaxError: Unexpected token '??='", 1)},
		{"python_too_old", "uv python install", newStderrServer("ERROR: Package 'x' requires a different Python: 3.8.10 not in '>=3.10'", 1)},
		{"package_not_found", "args", newStderrServer("npm error code E404\nnpm error 404 Not Found - GET https://registry.example/@x%2fnope - Not found", 1)},
		{"package_not_found", "args", newStderrServer("  × No solution found when resolving tool dependencies:\n  ╰─▶ Because mcp-nope was not found in the package registry", 1)},
		{"registry_unreachable", "npm ping", newStderrServer("npm error code ENOTFOUND\nnpm error syscall getaddrinfo", 1)},
		{"registry_certificate", "NODE_EXTRA_CA_CERTS", newStderrServer("npm error code SELF_SIGNED_CERT_IN_CHAIN", 1)},
		{"module_missing", "npm install", newStderrServer("Error: Cannot find module 'zod'\nRequire stack:", 1)},
		{"script_missing", "path in its args", newStderrServer("Error: Cannot find module '/srv/none/index.js'", 1)},
		{"module_missing", "uvx", newStderrServer("/usr/bin/python3: No module named no_such_server", 1)},
		{"folder_missing", "that path", newStderrServer("Warning: Cannot access directory /nope/nope, skipping\nError: None of the specified directories are accessible", 1)},
		{"folder_missing", "that path", newStderrServer("Error: ENOENT: no such file or directory, stat '/nope'", 1)},
		{"module_missing", "uvx", newStderrServer("ModuleNotFoundError: No module named 'mcp'", 1)},
		{"script_missing", "path in its args", newStderrServer("python3: can't open file '/srv/x.py': [Errno 2] No such file or directory", 2)},
		{"command_not_found", "install jq", newStderrServer("sh: 1: jq: not found", 127)},
		{"docker_not_running", "systemctl start docker", newStderrServer("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", 125)},
		{"docker_denied", "usermod -aG docker", newStderrServer("permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock", 1)},
		{"docker_image", "docker login", newStderrServer("docker: Error response from daemon: pull access denied for mcp/nope, repository does not exist", 125)},
		{"port_taken", "lsof", newStderrServer("Error: listen EADDRINUSE: address already in use :::3000", 1)},
		{"missing_setting", "set GITHUB_TOKEN in its env", newStderrServer("Error: GITHUB_TOKEN environment variable is required", 1)},
		{"missing_setting", "set SLACK_BOT_TOKEN in its env", newStderrServer("Please set the SLACK_BOT_TOKEN variable", 1)},
		{"missing_setting", "its env", newStderrServer("Fatal: no API key was provided: an api key is required", 1)},
		{"refused_login", "renew", newStderrServer("GitHub API error: 401 Bad credentials", 1)},
		{"bad_arguments", "args", newStderrServer("usage: server [-h] --root ROOT", 2)},
		{"disk_full", "df -h", newStderrServer("Error: ENOSPC: no space left on device, write", 1)},
		{"out_of_memory", "max-old-space-size", newStderrServer("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", 134)},
		{"no_access", "check the owner", newStderrServer("Error: EACCES: permission denied, open '/srv/x'", 1)},
		{"upstream_refused", "start that service", newStderrServer("Error: connect ECONNREFUSED 127.0.0.1:5432", 1)},
		{"ended", "exit 3", newStderrServer("something that nobody knows", 3)},
		{"ended_at_once", "", engine.Server{Command: "true"}},
		{"not_stdio", "as url", engine.Server{Command: "sh", Args: []string{"-c", "echo 'MCP Streamable HTTP Server listening on port 39999' >&2; exec sleep 3600"}}},
		{"not_stdio", "stdio", engine.Server{Command: "sh", Args: []string{"-c", "echo 'Welcome'; exec sleep 3600"}}},
		{"not_stdio", "as url", engine.Server{Command: "sh", Args: []string{"-c", "echo 'Listening on http://localhost:3000'; exec sleep 3600"}}},
		{"slow", "by hand", engine.Server{Command: "sh", Args: []string{"-c", "exec sleep 3600"}}},
		{"slow", "until it waits", engine.Server{Command: writeProgramFile(t, "#!/bin/sh\nexec sleep 3600\n", 0o700), Args: []string{"npx"}}},

		{"refused", "start the server", engine.Server{URL: "http://127.0.0.1:1/mcp"}},
		{"unknown_host", "url", engine.Server{URL: "http://no-such-host.invalid/mcp"}},
		{"untrusted_certificate", "SSL_CERT_FILE", newCertifiedServer(t, "127.0.0.1", time.Now().Add(time.Hour))},
		{"expired_certificate", "-dates", newCertifiedServer(t, "127.0.0.1", time.Now().Add(-time.Hour))},
		{"certificate_name", "openssl s_client", newCertifiedServer(t, "elsewhere.example", time.Now().Add(time.Hour))},
		{"no_tls", "http://", engine.Server{URL: strings.Replace(plain.URL, "http:", "https:", 1) + "/mcp"}},
		{"login", "retort auth login s", newFixedServer(t, 401, "text/plain", "no")},
		{"forbidden", "an account that has these rights", newFixedServer(t, 403, "text/plain", "no")},
		{"wrong_path", "/sse", newFixedServer(t, 404, "text/plain", "404 page not found")},
		{"wrong_path", `"type": "sse"`, newFixedServer(t, 405, "text/plain", "")},
		{"rate_limited", "retort doctor", newFixedServer(t, 429, "text/plain", "")},
		{"server_error", "curl -i", newFixedServer(t, 503, "text/plain", "")},
		{"refused_request", "headers", newFixedServer(t, 400, "application/json", `{"error":"x"}`)},
		{"html", "/mcp", newFixedServer(t, 200, "text/html", "<html><body>Welcome</body></html>")},
		{"not_mcp", "/mcp", newFixedServer(t, 200, "application/json", `{"hello": "world"}`)},
		{"slow", "curl", engine.Server{URL: "http://" + listenSilently(t) + "/mcp"}},
	}
	config := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Servers: []engine.Server{{Name: "works", Dial: demo.DialFunc("crm")}}}
	for i, c := range cases {
		c.server.Name = fmt.Sprintf("s%02d", i)
		config.Servers = append(config.Servers, c.server)
	}
	e, err := engine.Open(t.Context(), engine.WithExitPatience(config, testenv.Patience))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	found := map[string]engine.ServerDiagnosis{}
	diagnose := func(patience time.Duration, names ...string) {
		t.Helper()
		d, err := e.Doctor(t.Context(), nil, patience, names...)
		if err != nil || d.OK || len(d.Servers) != len(names) {
			t.Fatalf("OK is %v, %d servers of %d, %v", d.OK, len(d.Servers), len(names), err)
		}
		for _, s := range d.Servers {
			found[s.Name] = s
		}
	}
	names := map[string][]string{"": {"works"}}
	for i, c := range cases {
		kind := ""
		if c.cause == "slow" || c.cause == "not_stdio" { // these servers never answer
			kind = c.cause
		}
		names[kind] = append(names[kind], fmt.Sprintf("s%02d", i))
	}
	diagnose(time.Millisecond, names["slow"]...)
	for _, name := range names["not_stdio"] {
		testenv.WaitUntil(t, name+" has said something", func() bool {
			diagnose(time.Millisecond, name)
			cause := found[name].Cause
			return cause == nil || cause.ID != "slow"
		})
	}
	diagnose(testenv.Patience, names[""]...)
	if s := found["works"]; !s.OK || s.Cause != nil || s.Tools != 12 || s.Era != "stateless" || s.LatencyMS <= 0 {
		t.Errorf("%+v", s)
	}
	for i, c := range cases {
		s := found[fmt.Sprintf("s%02d", i)]
		if s.OK || s.Cause == nil {
			t.Errorf("%s: %+v is said to be fine", c.cause, c.server)
			continue
		}
		if s.Cause.ID == "not_in_path" && c.cause == "command_not_found" || s.Cause.ID == "no_dns" && c.cause == "unknown_host" {
			continue // this machine has it, where an empty PATH does not lead; it knows nobody who knows hosts
		}
		if s.Cause.ID != c.cause || !strings.Contains(s.Cause.Mend, c.mend) {
			t.Errorf("want %s (%s), got %s: %s → %s\n%+v", c.cause, c.mend, s.Cause.ID, s.Cause.Words, s.Cause.Mend, s.Error)
		}
	}
}

// TestDoctorOfOne checks that Doctor can be restricted to one server, and that it refuses a name that no server has.
func TestDoctorOfOne(t *testing.T) {
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Servers: []engine.Server{{Name: "crm", Dial: demo.DialFunc("crm")}, {Name: "bad", Command: "/no/such"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	d, err := e.Doctor(t.Context(), nil, testenv.Patience, "crm")
	if err != nil || !d.OK || len(d.Servers) != 1 || d.Servers[0].Name != "crm" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := e.Doctor(t.Context(), nil, testenv.Patience, "crn"); err == nil || !strings.Contains(err.Error(), `no server "crn"`) {
		t.Error(err)
	}
	d, err = e.Doctor(t.Context(), []doctor.CheckResult{{Level: doctor.Broken}}, testenv.Patience, "crm")
	if err != nil || d.OK {
		t.Error("a broken machine is said to be fine")
	}
}

// TestExamine checks that faults of the data directory are found, and repaired only if that is requested and safe.
func TestExamine(t *testing.T) {
	home, keys := filepath.Join(t.TempDir(), "home"), filepath.Join(t.TempDir(), "keys")
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: home, Keys: keys, Servers: []engine.Server{{Name: "crm", Dial: demo.DialFunc("crm")}}}
	open := func() {
		t.Helper()
		e, err := engine.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		e.WaitForServers(t.Context())
		if o := e.Execute(t.Context(), engine.Request{Code: "return 1"}); o.Error != nil {
			t.Fatal(o.Error)
		}
		if text := examineMachine(t, c, false); !strings.Contains(text, "ok engines: processes that use this data directory: "+fmt.Sprint(os.Getpid())) {
			t.Errorf("the engine is not seen:\n%s", text)
		}
	}
	lacks := func(text string, words ...string) {
		t.Helper()
		for _, w := range words {
			if strings.Contains(text, w) {
				t.Errorf("%s is said:\n%s", w, text)
			}
		}
	}
	has := func(text string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s is not said:\n%s", w, text)
			}
		}
	}
	has(examineMachine(t, c, false), "ok home: "+home+" does not exist yet")
	has(examineMachine(t, c, true), "mended home: made "+home, "mended keys: made "+keys)
	open()
	text := examineMachine(t, c, false)
	has(text, "ok home: ", "ok audit log: entries: ", "ok clock: ", "ok key: ")
	lacks(text, "warning", "broken", "mended", "ok engines")

	kept, _ := filepath.Glob(filepath.Join(home, "catalog", "*.tools.json"))
	if err := errors.Join(os.Chmod(home, 0o755), os.Chmod(filepath.Join(keys, "audit.key"), 0o644), os.WriteFile(kept[0], []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	has(examineMachine(t, c, false), "warning home: ", "warning keys: ", "warning catalog: ")
	has(examineMachine(t, c, true), "mended home: ", "mended keys: ", "mended catalog: ")
	lacks(examineMachine(t, c, false), "warning", "broken", "mended")
	open()
	if again, err := os.ReadFile(kept[0]); err != nil || len(again) < 1000 {
		t.Errorf("the definitions are not rewritten: %v", err)
	}

	records, _ := filepath.Glob(filepath.Join(home, "audit", "record-*"))
	for _, f := range records {
		_ = os.Remove(f)
	}
	text = examineMachine(t, c, true)
	has(text, "broken audit log: ", "is missing")
	lacks(text, "ok record")
}

// examineMachine returns the results of ExamineMachine, one line for each.
func examineMachine(t *testing.T, c engine.Config, fix bool) (text string) {
	t.Helper()
	checks, err := admin.ExamineMachine(t.Context(), c, fix)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		text += fmt.Sprintf("%s %s: %s → %s\n", c.Level, c.Name, c.Words, c.Mend)
	}
	return text
}
