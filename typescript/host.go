package tsc

import (
	"io/fs"
	"strings"
	"time"

	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/bundled"
	"github.com/microsoft/typescript-go/internal/diagnostics"
	"github.com/microsoft/typescript-go/internal/tsoptions"
	"github.com/microsoft/typescript-go/internal/tspath"
	"github.com/microsoft/typescript-go/internal/vfs"
)

// host implements the compiler's view of the file system: the files of one check and the bundled lib files.
type host struct {
	main  *ast.SourceFile
	files memoryFS
	cache *parseCache
	fs    vfs.FS
}

func newHost(main *ast.SourceFile, files map[string]string, cache *parseCache) *host {
	fs := newMemoryFS(files, main.FileName(), main.Text())
	return &host{main: main, files: fs, cache: cache, fs: bundled.WrapFS(fs)}
}

func (h *host) FS() vfs.FS                         { return h.fs }
func (h *host) DefaultLibraryPath() string         { return bundled.LibPath() }
func (h *host) GetCurrentDirectory() string        { return "/" }
func (h *host) Trace(*diagnostics.Message, ...any) {}
func (h *host) GetResolvedProjectReference(string, tspath.Path) *tsoptions.ParsedCommandLine {
	return nil
}

// GetSourceFile parses a file, or returns the one that an earlier check has parsed and bound.
func (h *host) GetSourceFile(opts ast.SourceFileParseOptions) *ast.SourceFile {
	if opts.FileName == h.main.FileName() {
		return h.main
	}
	text, ok := h.fs.ReadFile(opts.FileName)
	if !ok {
		return nil
	}
	return h.cache.parse(opts, text)
}

// memoryFS implements a read-only file tree in memory. Paths must be absolute and clean.
type memoryFS struct {
	files map[string]string
	dirs  map[string]bool
}

func newMemoryFS(files map[string]string, main, text string) memoryFS {
	m := memoryFS{files: make(map[string]string, len(files)+1), dirs: map[string]bool{"/": true}}
	for path, content := range files {
		m.add(path, content)
	}
	m.add(main, text)
	return m
}

func (m memoryFS) add(path, content string) {
	m.files[path] = content
	for dir := parent(path); !m.dirs[dir]; dir = parent(dir) {
		m.dirs[dir] = true
	}
}

func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

func (m memoryFS) UseCaseSensitiveFileNames() bool { return true }

func (m memoryFS) FileExists(path string) bool {
	_, ok := m.files[path]
	return ok
}

func (m memoryFS) ReadFile(path string) (string, bool) {
	text, ok := m.files[path]
	return text, ok
}

func (m memoryFS) DirectoryExists(path string) bool {
	return m.dirs[strings.TrimSuffix(path, "/")] || path == "/"
}

func (m memoryFS) Realpath(path string) string                { return path }
func (m memoryFS) GetAccessibleEntries(string) vfs.Entries    { return vfs.Entries{} }
func (m memoryFS) Stat(string) vfs.FileInfo                   { return nil }
func (m memoryFS) WalkDir(string, vfs.WalkDirFunc) error      { return fs.ErrNotExist }
func (m memoryFS) WriteFile(string, string) error             { return fs.ErrPermission }
func (m memoryFS) AppendFile(string, string) error            { return fs.ErrPermission }
func (m memoryFS) Remove(string) error                        { return fs.ErrPermission }
func (m memoryFS) Chtimes(string, time.Time, time.Time) error { return fs.ErrPermission }
