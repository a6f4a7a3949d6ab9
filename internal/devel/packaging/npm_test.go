package packaging

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"retort/internal/devel/testenv"
)

var npmTemplates = os.DirFS(filepath.Join(root, "packaging", "npm"))

const npmVersion = "1.2.3-rc.1"

// unpackTarball returns the files of a tarball by name, and checks that all of them are below "package".
func unpackTarball(t *testing.T, tarball []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		name, found := strings.CutPrefix(h.Name, "package/")
		if executable := h.Mode&0o111 != 0; !found || executable != strings.HasPrefix(name, "bin/") {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		files[name] = string(text)
	}
}

func wrapperTarball(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteWrapper(&b, npmTemplates, npmVersion, testAccounts(), []byte("licence")); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func platformTarball(t *testing.T, binary string, p Platform) []byte {
	t.Helper()
	var b bytes.Buffer
	err := WritePlatformPackage(&b, npmTemplates, npmVersion, testAccounts(), []byte("licence"), strings.NewReader(binary), int64(len(binary)), p)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packageManifest holds the members of package.json that npm uses.
type packageManifest struct {
	Name, Version, License string
	OS, CPU                []string
	Bin                    map[string]string
	Optional               map[string]string `json:"optionalDependencies"`
	Scripts                map[string]string
}

func decodeManifest(t *testing.T, files map[string]string) (m packageManifest) {
	t.Helper()
	if err := json.Unmarshal([]byte(files["package.json"]), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestNPMPackages(t *testing.T) {
	files := unpackTarball(t, wrapperTarball(t))
	m := decodeManifest(t, files)
	if m.Name != "@some-scope/retort" || m.Version != npmVersion || m.License != "Apache-2.0" || len(m.Optional) != len(platforms) || m.Scripts != nil {
		t.Errorf("%+v", m)
	}
	if files[m.Bin["retort"]] == "" || files["LICENSE"] != "licence" || !strings.Contains(files["README.md"], "npx @some-scope/retort demo") {
		t.Errorf("%v", files)
	}
	for _, p := range platforms {
		tarball := platformTarball(t, "binary", p)
		if !bytes.Equal(tarball, platformTarball(t, "binary", p)) {
			t.Errorf("%v: two packages of the same differ", p)
		}
		files := unpackTarball(t, tarball)
		d := decodeManifest(t, files)
		if m.Optional[d.Name] != npmVersion || d.Version != npmVersion || files["bin/"+p.binaryName()] != "binary" {
			t.Errorf("%v: %+v", p, d)
		}
		if len(d.OS) != 1 || len(d.CPU) != 1 || d.Name != "@some-scope/retort-"+d.OS[0]+"-"+d.CPU[0] {
			t.Errorf("%v: %+v", p, d)
		}
	}
	for _, name := range []string{"@some-scope/retort-linux-x64", "@some-scope/retort-darwin-arm64", "@some-scope/retort-win32-x64"} {
		if m.Optional[name] == "" {
			t.Errorf("no %s in %v", name, m.Optional)
		}
	}
}

func TestNPMPackagesRefuse(t *testing.T) {
	write := func(version string, size int64) error {
		return WritePlatformPackage(io.Discard, npmTemplates, version, testAccounts(), nil, strings.NewReader("binary"), size, platforms[0])
	}
	for _, v := range hostileVersions() {
		if write(v, 6) == nil || WriteWrapper(io.Discard, npmTemplates, v, testAccounts(), nil) == nil {
			t.Errorf("%q is packed", v)
		}
	}
	for _, size := range []int64{5, 7} {
		if write(npmVersion, size) == nil {
			t.Errorf("a binary of 6 bytes is packed as one of %d", size)
		}
	}
	if WriteWrapper(io.Discard, os.DirFS(t.TempDir()), npmVersion, testAccounts(), nil) == nil {
		t.Error("a package without templates is packed")
	}
}

// fakeProgram is installed as the program of this platform. Its first argument selects what it does.
const fakeProgram = `#!/usr/bin/env node
const [what, ...rest] = process.argv.slice(2);
switch (what) {
  case "echo":
    process.stdin.on("data", (text) => process.stdout.write(rest.join("|") + " " + text));
    process.stdin.on("end", () => { process.stderr.write("done\n"); process.exitCode = 7; });
    break;
  case "wait":
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
      process.on(signal, () => { process.stdout.write(signal + "\n", () => process.exit(9)); });
    process.stdin.resume();
    process.stdout.write("ready\n");
    break;
  case "die":
    process.kill(process.pid, rest[0]);
}
`

// installNPM installs tarballs without network in a new folder and returns the path of the command. It leaves out the
// package of this platform unless platform is true.
func installNPM(t *testing.T, platform bool) (command string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake program is a script")
	}
	testenv.Need(t, "node")
	npm := testenv.Need(t, "npm")
	dir := t.TempDir()
	tarballs := map[string][]byte{"wrapper.tgz": wrapperTarball(t)}
	if platform {
		tarballs["platform.tgz"] = platformTarball(t, fakeProgram, Platform{runtime.GOOS, runtime.GOARCH})
	}
	args := []string{"install", "--offline", "--no-audit", "--no-fund", "--cache", filepath.Join(dir, "cache"), "--prefix", dir}
	for name, tarball := range tarballs {
		write(t, filepath.Join(dir, name), string(tarball))
		args = append(args, filepath.Join(dir, name))
	}
	c := exec.CommandContext(testenv.Context(t), npm, args...)
	c.Dir = dir
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return filepath.Join(dir, "node_modules", ".bin", "retort")
}

func TestWrapper(t *testing.T) {
	command := installNPM(t, true)
	t.Run("streams and exit code", func(t *testing.T) {
		c := exec.CommandContext(testenv.Context(t), command, "echo", "a b", "--flag", "")
		c.Stdin = strings.NewReader("input")
		var out, said bytes.Buffer
		c.Stdout, c.Stderr = &out, &said
		_ = c.Run()
		if code := c.ProcessState.ExitCode(); code != 7 || out.String() != "a b|--flag| input" || said.String() != "done\n" {
			t.Errorf("exit code %d: %s%s", code, &out, &said)
		}
	})
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		t.Run("forwards "+signal.String(), func(t *testing.T) { checkForwarded(t, command, signal) })
	}
	t.Run("dies as the program", func(t *testing.T) {
		c := exec.CommandContext(testenv.Context(t), command, "die", "SIGKILL")
		_ = c.Run()
		if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Errorf("%v", c.ProcessState)
		}
	})
}

// checkForwarded checks that the program receives a signal that is sent to the wrapper, and decides how it ends.
func checkForwarded(t *testing.T, command string, signal syscall.Signal) {
	c := exec.CommandContext(testenv.Context(t), command, "wait")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	c.Stdout = output
	err = c.Start()
	output.Close()
	if err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(stdout, ready); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	stdin.Close() // ends the program if it still runs
	text, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(text)); got != signalName(signal) || c.ProcessState.ExitCode() != 9 {
		t.Errorf("the program received %q, and the wrapper ended with %v", got, c.ProcessState)
	}
}

func signalName(s syscall.Signal) string {
	names := map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT"}
	return names[s]
}

// TestWrapperWithoutProgram checks the errors of the wrapper if the package of the platform is missing or if there is
// none.
func TestWrapperWithoutProgram(t *testing.T) {
	command := installNPM(t, false)
	text, err := exec.CommandContext(testenv.Context(t), command, "version").CombinedOutput()
	for _, want := range []string{"@some-scope/retort-" + (Platform{runtime.GOOS, runtime.GOARCH}).nodeName(), "--no-optional", "darwin-arm64", "win32-x64"} {
		if err == nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: no %s in %s", err, want, text)
		}
	}
	script, err := filepath.EvalSymlinks(command)
	if err != nil {
		t.Fatal(err)
	}
	pretend := `Object.defineProperty(process, "platform", { value: "plan9" }); require(` + quote(script) + `)`
	text, err = exec.CommandContext(testenv.Context(t), testenv.Need(t, "node"), "-e", pretend).CombinedOutput()
	if err == nil || !strings.Contains(string(text), "there is no program for plan9-") || strings.Count(string(text), "\n") != 1 {
		t.Errorf("%v: %s", err, text)
	}
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// TestWrapperIsPlain checks that the wrapper has no scripts that run at installation.
func TestWrapperIsPlain(t *testing.T) {
	for _, folder := range []string{"wrapper", "platform"} {
		text := string(read(t, "packaging/npm/"+folder+"/package.json"))
		if slices.ContainsFunc([]string{"scripts", "postinstall", `"dependencies"`}, func(s string) bool { return strings.Contains(text, s) }) {
			t.Errorf("%s: %s", folder, text)
		}
	}
}
