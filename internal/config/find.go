package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"retort/internal/base/seal"
)

// maxFileBytes bounds the size of a configuration file, in bytes. Some clients store their history in the same file,
// which then grows to megabytes.
const maxFileBytes = 64 << 20

func newLoader(o Options) *loader {
	l := &loader{options: o, config: &Config{}, defined: map[string]Position{}}
	if o.UserConfigDir == "" {
		l.options.UserConfigDir = l.userDir("XDG_CONFIG_HOME", ".config")
	}
	return l
}

// userDir returns a directory of the user by the XDG convention: the value of the environment variable or, if it
// is not set, the folder fallback in the user's home directory. It returns "" if neither is known.
func (l *loader) userDir(variable string, fallback ...string) string {
	if l.options.Getenv != nil {
		if dir, _ := l.options.Getenv(variable); filepath.IsAbs(dir) {
			return dir
		}
	}
	if l.options.UserHome == "" {
		return ""
	}
	return filepath.Join(append([]string{l.options.UserHome}, fallback...)...)
}

// configFolder returns Retort's folder in the user's configuration directory.
func (l *loader) configFolder() string {
	if l.options.UserConfigDir == "" {
		return ""
	}
	return filepath.Join(l.options.UserConfigDir, "retort")
}

// settingsFile names a YAML file with settings that is to be read, and says whether it is the user's own.
type settingsFile struct {
	path string
	user bool
}

// isYAML reports whether a file is a YAML file, according to its name. A YAML file given with --config holds
// settings; other files hold servers.
func isYAML(file string) bool {
	ext := strings.ToLower(filepath.Ext(file))
	return ext == ".yaml" || ext == ".yml"
}

// clientPaths returns the server files to read.
func (l *loader) clientPaths() []string {
	if len(l.options.Files) == 0 {
		return l.firstFile(filepath.Join(l.options.Dir, ".mcp.json"), joinIfSet(l.configFolder(), "mcp.json"))
	}
	var files []string
	for _, f := range l.options.Files {
		if f = l.absolutePath(f); !isYAML(f) && !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	return files
}

// settingsPaths returns the settings files to read after the clients' files. These are the files given with --config,
// else every retort.yaml next to a client's file and, if no file was given, the one in the working directory. If none
// of these exists and no client's file has settings, it returns the user's own file.
func (l *loader) settingsPaths(clients []string) []settingsFile {
	var found []settingsFile
	for _, f := range l.options.Files {
		if isYAML(f) {
			found = append(found, settingsFile{l.absolutePath(f), false})
		}
	}
	if len(found) > 0 {
		return found
	}
	var near []string
	if len(l.options.Files) == 0 {
		near = append(near, filepath.Join(l.options.Dir, "retort.yaml"))
	}
	for _, f := range clients {
		near = append(near, filepath.Join(filepath.Dir(f), "retort.yaml"))
	}
	user := joinIfSet(l.configFolder(), "retort.yaml")
	for i, f := range near {
		if !slices.Contains(near[:i], f) && l.noteExists(f) {
			found = append(found, settingsFile{f, f == user})
		}
	}
	if len(found)+len(l.found) == 0 && user != "" && l.noteExists(user) {
		found = append(found, settingsFile{user, true})
	}
	return found
}

func joinIfSet(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

func (l *loader) firstFile(files ...string) []string {
	for _, f := range files {
		if f != "" && l.noteExists(f) {
			return []string{f}
		}
	}
	return nil
}

// noteExists reports whether a file exists, even if it cannot be read: an unreadable file must not be skipped
// silently. A file that does not exist is reported to Options.Note.
func (l *loader) noteExists(file string) bool {
	_, err := os.Stat(file)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	l.noteContent(file, nil)
	return false
}

func (l *loader) noteContent(file string, content []byte) {
	if l.options.Note != nil {
		l.options.Note(file, content)
	}
}

// readAndNote reads a file and passes its content to Options.Note.
func (l *loader) readAndNote(file string) ([]byte, error) {
	src, err := readFile(file, l.options.Again)
	if err != nil {
		l.noteContent(file, nil)
		return nil, err
	}
	l.noteContent(file, append([]byte{}, src...))
	return src, nil
}

func (l *loader) absolutePath(file string) string {
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(l.options.Dir, file)
}

// displayPath returns the path to use for a file in messages: relative to Options.Dir if the file is in it.
func (l *loader) displayPath(file string) string {
	if rel, err := filepath.Rel(l.options.Dir, file); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return file
}

// newReader returns a reader for the values of a file.
func (l *loader) newReader(file string) *nodeReader {
	dir := l.projectFolder(file)
	if dir == "" {
		dir = l.options.Dir
	}
	return &nodeReader{
		file: l.displayPath(file), dir: dir, home: l.options.UserHome, read: l.readAndNote,
		vars: variableLookup{getenv: l.options.Getenv, builtin: map[string]string{
			"workspaceFolder": dir, "userHome": l.options.UserHome,
		}},
	}
}

// projectFolder returns the directory of the project that a file configures, or "" for a file of the user.
func (l *loader) projectFolder(file string) string {
	dir := filepath.Dir(file)
	if base := filepath.Base(dir); base == ".vscode" || base == ".cursor" {
		dir = filepath.Dir(dir)
	}
	if dir == l.configFolder() || dir == l.options.UserHome {
		return ""
	}
	return dir
}

// chooseHome returns the data directory. This is Options.Home, if it is set. Otherwise it is the folder .retort in
// the project of the first file that belongs to a project. If no file does, it is a folder in the user's data
// directory.
func (l *loader) chooseHome() string {
	if l.options.Home != "" {
		return l.absolutePath(l.options.Home)
	}
	for _, f := range l.config.Files {
		if dir := l.projectFolder(f); dir != "" {
			return filepath.Join(dir, ".retort")
		}
	}
	if dir := l.userDir("XDG_DATA_HOME", ".local", "share"); dir != "" {
		return filepath.Join(dir, "retort")
	}
	return filepath.Join(l.options.Dir, ".retort")
}

// parseFile reads a file and parses it with parser.
func (l *loader) parseFile(file string, parser func([]byte) (*valueNode, error)) (*valueNode, bool) {
	src, err := l.readAndNote(file)
	if err != nil {
		l.problems.addProblem(Position{File: l.displayPath(file)}, "", "%s", err)
		return nil, false
	}
	l.config.Files = append(l.config.Files, file)
	n, err := parser(src)
	if err != nil {
		l.problems.addSyntaxError(l.displayPath(file), err)
		return nil, false
	}
	return n, true
}

// readFile reads a configuration file. Its error does not repeat the name of the file. If again is set, it refuses
// files that are not regular, such as pipes: they can be read only once.
func readFile(file string, again bool) ([]byte, error) {
	f, err := openFile(file, again)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no such file")
	}
	if err != nil {
		return nil, describeReadError(err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, describeReadError(err)
	case len(src) > maxFileBytes:
		return nil, fmt.Errorf("it is larger than %s", showSize(maxFileBytes))
	}
	return src, nil
}

// openFile opens a regular file, or a file descriptor that this process inherited. Opening these never blocks, while
// opening a named pipe would wait for a writer. If again is set, only regular files are opened.
func openFile(file string, again bool) (*os.File, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a directory")
	case !info.Mode().IsRegular() && again:
		return nil, errors.New("it is not a regular file, so it can be read only once; name a regular file")
	case isInherited(file):
		return os.Open(file)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	if file, err = filepath.EvalSymlinks(file); err != nil {
		return nil, err
	}
	return seal.Open(file)
}

// isInherited reports whether a path names a file descriptor that this process inherited, such as /dev/fd/63 of a
// shell's <(command), or the null device. Opening these does not block.
func isInherited(file string) bool {
	file = filepath.ToSlash(file)
	return file == "/dev/null" || file == "/dev/stdin" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/self/fd/")
}

// describeReadError returns the cause of an error of package os, without operation and path.
func describeReadError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("it cannot be read: %w", p.Err)
	}
	return err
}
