package vm

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeTestFile writes a file below dir. The argument name is the file's path relative to dir.
func writeTestFile(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// gzipped returns text compressed with gzip, as some distributions compress kernel modules.
func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const virtio = "kernel/drivers/virtio/"

// fakeKernel creates the files of a kernel whose modules depend on each other.
func fakeKernel(t *testing.T, dir, version string) {
	lib := "lib/modules/" + version + "/"
	writeTestFile(t, dir, "boot/vmlinuz-"+version, "kernel")
	writeTestFile(t, dir, lib+"modules.builtin", virtio+"virtio_mmio.ko\n")
	writeTestFile(t, dir, lib+virtio+"virtio.ko", "a\x00depends=virtio_ring\x00")
	writeTestFile(t, dir, lib+virtio+"virtio_ring.ko.gz", gzipped(t, "b\x00depends=\x00"))
	writeTestFile(t, dir, lib+"kernel/drivers/char/virtio_console.ko", "c\x00depends=virtio,virtio-ring\x00")
}

func TestFindKernel(t *testing.T) {
	dir := t.TempDir()
	fakeKernel(t, dir, "6.1.0-2")
	writeTestFile(t, dir, "boot/vmlinuz-6.1.0-9", "without modules")
	k, err := findKernel(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	files, err := k.moduleFiles(serialParts)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range files {
		names = append(names, filepath.Base(m))
	}
	if got := strings.Join(names, " "); got != "virtio_ring.ko.gz virtio.ko virtio_console.ko" {
		t.Errorf("loaded in the order %s", got)
	}
	if code, err := readModule(files[0]); err != nil || !strings.HasPrefix(string(code), "b") {
		t.Errorf("%q %v", code, err)
	}
	writeTestFile(t, dir, "lib/modules/6.1.0-2/"+virtio+"virtio_ring.ko.gz", "rubbish")
	if _, err := findKernel(dir); err == nil || !strings.Contains(err.Error(), "decompress") {
		t.Errorf("of what cannot be read: %v", err)
	}
	writeTestFile(t, dir, "lib/modules/6.1.0-2/"+virtio+"virtio_ring.ko", "b\x00depends=virtio\x00")
	if _, err := findKernel(dir); err == nil || !strings.Contains(err.Error(), "depend on each other") {
		t.Errorf("of a circle: %v", err)
	}
}

// TestFindKernelBesideModules checks that findKernel finds a kernel that is stored in the folder of its modules, as
// Fedora does it.
func TestFindKernelBesideModules(t *testing.T) {
	dir := t.TempDir()
	fakeKernel(t, dir, "6.9.1")
	if err := os.Rename(filepath.Join(dir, "boot/vmlinuz-6.9.1"), filepath.Join(dir, "lib/modules/6.9.1/vmlinuz")); err != nil {
		t.Fatal(err)
	}
	k, err := findKernel(dir)
	if err != nil {
		t.Fatal(err)
	}
	if files, err := k.moduleFiles(serialParts); err != nil || len(files) != 3 {
		t.Errorf("%v %v", files, err)
	}
}

// TestFetchKernel checks that fetchKernel downloads a kernel and the separate package with its modules. Fake programs
// take the place of Ubuntu's package tools. The test also checks that the previous kernel is kept if a download fails.
func TestFetchKernel(t *testing.T) {
	builder, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Skip("there is no dpkg-deb here")
	}
	bin, tree := t.TempDir(), t.TempDir()
	fakeKernel(t, tree, "6.8.0-1-generic")
	writeTestFile(t, tree, "usr/share/doc/large", "is not kept")
	writeTestFile(t, tree, "DEBIAN/control", "Package: linux-image-6.8.0-1-generic\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody\nDescription: none\n")
	if out, err := exec.Command(builder, "-b", tree, filepath.Join(bin, "image.deb")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	writeTestFile(t, bin, "apt-cache", `#!/bin/sh
case "$3" in
linux-image-virtual) echo 'Package: linux-image-virtual'; echo 'Depends: linux-image-6.8.0-1-generic (= 1), x' ;;
linux-modules-6.8.0-1-generic) echo 'Package: it' ;;
*) echo 'E: No packages found' >&2; exit 100 ;;
esac`)
	writeTestFile(t, bin, "apt-get", "#!/bin/sh\n"+`[ "$2" = download ] || exit 1; echo "$@" > "`+bin+`/asked"; cp "`+bin+`/image.deb" .`)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	b := newBackend(Options{Dir: t.TempDir()})
	dir, origin, err := b.fetchKernel(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if asked, _ := os.ReadFile(filepath.Join(bin, "asked")); string(asked) != "-q download linux-image-6.8.0-1-generic linux-modules-6.8.0-1-generic\n" {
		t.Errorf("asked for %q", asked)
	}
	if _, err := findKernel(dir); err != nil || origin != "the package linux-image-6.8.0-1-generic" {
		t.Errorf("%q: %v", origin, err)
	}
	if fileExists(filepath.Join(dir, "usr")) || fileExists(filepath.Join(b.Dir, fetching)) {
		t.Error("more is kept than is needed")
	}
	writeTestFile(t, bin, "apt-get", "#!/bin/sh\necho 'E: no network' >&2; exit 100")
	if _, _, err := b.fetchKernel(t.Context()); err == nil || !strings.Contains(err.Error(), "no network") {
		t.Errorf("without a network: %v", err)
	}
	if _, err := findKernel(dir); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
}

// TestGuestIsStatic checks that a guest binary is rejected if it is not statically linked, because a machine contains
// no shared libraries.
func TestGuestIsStatic(t *testing.T) {
	dir := t.TempDir()
	fakeKernel(t, dir, "6.9.1")
	b := newBackend(Options{Dir: t.TempDir(), Kernel: dir, Guest: []string{"/bin/sh", "guest"}})
	if _, err := b.describeImage(quickjs, nil); err == nil || !strings.Contains(err.Error(), "needs shared libraries") {
		t.Errorf("%v", err)
	}
}

// TestUnusedMachinesAreRemoved checks that the saved machines of a runtime are removed if they are incomplete, long
// unused or too many. Recently used machines, and all machines of another runtime, must be kept.
func TestUnusedMachinesAreRemoved(t *testing.T) {
	b := newBackend(Options{Dir: t.TempDir()})
	for name, days := range map[string]int{"a": 0, "b": 1, "c": 2, "old": 9} {
		file := filepath.Join(b.Dir, prefix+"python-"+name, readyFile)
		writeTestFile(t, b.Dir, prefix+"python-"+name+"/"+readyFile, "")
		then := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
	}
	writeTestFile(t, b.Dir, prefix+"python-half/"+memoryFile, "")
	writeTestFile(t, b.Dir, prefix+"quickjs-old/"+memoryFile, "")
	writeTestFile(t, b.Dir, making+"python/"+memoryFile, "")
	b.removeUnfinished()
	b.removeUnused("python")
	left, _ := filepath.Glob(filepath.Join(b.Dir, "*"))
	for n := range left {
		left[n] = strings.TrimPrefix(filepath.Base(left[n]), prefix)
	}
	if got := strings.Join(left, " "); got != "python-a python-b quickjs-old" {
		t.Errorf("left are %s", got)
	}
}
