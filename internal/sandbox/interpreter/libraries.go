package interpreter

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// addLibraries adds to the image the shared libraries that an executable or library needs, each at the path where the
// dynamic loader looks for it. The argument dir is the directory of the executable or library in the sandbox.
func (m *FileImage) addLibraries(file, dir string) error {
	search := append(loaderConfig("/etc/ld.so.conf", 0), standardDirs()...)
	return m.addNeeded(file, dir, search)
}

// addNeeded adds to the image the shared libraries that an ELF file needs, and recursively those that these libraries
// need.
func (m *FileImage) addNeeded(file, dir string, search []string) error {
	f, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	if loader := loaderOf(f); loader != "" && m.Sources[loader] == "" {
		if err := m.addFile(loader, loader); err != nil {
			return err
		}
		// The loader's cache lists libraries in directories that it does not search.
		if _, err := os.Stat("/etc/ld.so.cache"); err == nil {
			m.Sources["/etc/ld.so.cache"] = "/etc/ld.so.cache"
		}
	}
	needed, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	own := runPaths(f)
	if slices.Contains(needed, "libc.so.6") {
		// glibc loads it itself when a thread ends.
		_ = m.addLibrary("libgcc_s.so.1", file, dir, own, search)
	}
	for _, name := range needed {
		if err := m.addLibrary(name, file, dir, own, search); err != nil {
			return err
		}
	}
	return nil
}

var errMissing = errors.New("a library that it needs is missing")

// addLibrary finds a library by name and adds it to the image.
func (m *FileImage) addLibrary(name, file, dir string, own, search []string) error {
	for _, p := range own {
		source, target := expandOrigin(p, filepath.Dir(file)), expandOrigin(p, dir)
		if found := path.Join(source, name); isFile(found) {
			return m.addResolved(found, path.Join(target, name), search)
		}
	}
	for _, d := range search {
		if found := path.Join(d, name); isFile(found) {
			return m.addResolved(found, found, search)
		}
	}
	if strings.HasPrefix(name, "linux-vdso") || m.loaderIs(name) {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", file, errMissing, name)
}

// loaderIs reports whether a library is the dynamic loader itself.
func (m *FileImage) loaderIs(name string) bool {
	for target := range m.Sources {
		if path.Base(target) == name {
			return true
		}
	}
	return false
}

func (m *FileImage) addResolved(source, target string, search []string) error {
	if m.Sources[target] != "" {
		return nil
	}
	if err := m.addFile(source, target); err != nil {
		return err
	}
	return m.addNeeded(m.Sources[target], path.Dir(target), search)
}

func (m *FileImage) addFile(source, target string) error {
	real, err := filepath.EvalSymlinks(source)
	if err == nil {
		m.Sources[target] = real
	}
	return err
}

// loaderOf returns the path of the dynamic loader that an ELF file names.
func loaderOf(f *elf.File) string {
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		data := make([]byte, p.Filesz)
		if _, err := p.ReadAt(data, 0); err == nil {
			return strings.TrimRight(string(data), "\x00")
		}
	}
	return ""
}

// runPaths returns the library directories that an ELF file names.
func runPaths(f *elf.File) []string {
	var dirs []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		values, _ := f.DynString(tag)
		for _, v := range values {
			dirs = append(dirs, strings.Split(v, ":")...)
		}
	}
	return dirs
}

func expandOrigin(dir, origin string) string {
	return path.Clean(strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(dir))
}

// loaderConfig returns the library directories that an ld.so.conf file lists, including those in files that it
// includes.
func loaderConfig(file string, depth int) []string {
	f, err := os.Open(file)
	if err != nil || depth > 4 {
		return nil
	}
	defer f.Close()
	var dirs []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		line = strings.TrimSpace(line)
		if pattern, ok := strings.CutPrefix(line, "include "); ok {
			if !path.IsAbs(pattern) {
				pattern = path.Join(path.Dir(file), pattern)
			}
			matches, _ := filepath.Glob(strings.TrimSpace(pattern))
			for _, m := range matches {
				dirs = append(dirs, loaderConfig(m, depth+1)...)
			}
		} else if path.IsAbs(line) {
			dirs = append(dirs, line)
		}
	}
	return dirs
}

// standardDirs lists the directories that dynamic loaders search for libraries by default.
func standardDirs() []string {
	var dirs []string
	for _, pattern := range []string{"/lib/*-linux-*", "/usr/lib/*-linux-*"} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	return append(dirs, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return ": " + line
		}
	}
	return ""
}
