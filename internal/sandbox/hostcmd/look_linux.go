package hostcmd

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/interpreter"
)

// FindCommands finds the host commands that the settings name, each by an absolute path or by a name, which is
// searched in PATH. It records a command that does not exist or can never be started together with the reason.
func FindCommands(written []string) CommandSet {
	s := &commandSearch{CommandSet: CommandSet{found: map[string]*HostCommand{}}, paths: map[string]string{}}
	for _, w := range written {
		s.lookupCommand(w)
	}
	for _, script := range s.scripts {
		s.addScript(script)
	}
	return s.CommandSet
}

// commandSearch holds the state of FindCommands. Scripts are added last, because their interpreters must be known by
// then.
type commandSearch struct {
	CommandSet
	paths   map[string]string // path of each command as the settings spell it, by the command's name
	scripts []shebangScript
}

// shebangScript represents an executable file that begins with "#!".
type shebangScript struct {
	name, written, file string
	line                string // first line of the script, without "#!"
	same                confine.FileIdentity
}

func (s *commandSearch) lookupCommand(written string) {
	name := path.Base(written)
	before, known := s.paths[name]
	switch {
	case known && before == written:
		return
	case known:
		delete(s.found, name)
		s.addUnfit(name, written, "programs would call it %s, and thus also %s", name, before)
		return
	}
	s.paths[name] = written
	if strings.ContainsRune(written, filepath.Separator) && !filepath.IsAbs(written) {
		s.addUnfit(name, written, "a command must be a name that is found in PATH, or an absolute path")
		return
	}
	found, err := exec.LookPath(written)
	if err == nil && filepath.IsAbs(found) {
		found, err = filepath.EvalSymlinks(found)
	} else if err == nil {
		err = exec.ErrDot
	}
	if err != nil {
		s.missing = append(s.missing, sandbox.MissingCommand{
			Command: name,
			Why: RefusedError("%s is not on this machine: %v", written, err).WithHint(
				"install it, or set its absolute path (setting commands), and start Retort again",
			),
		})
		return
	}
	if err := s.addFile(name, written, found); err != nil {
		s.addUnfit(name, written, "%v", err)
	}
}

// addUnfit records that a command cannot be started, and why.
func (s *CommandSet) addUnfit(name, written, format string, args ...any) {
	why := RefusedError("programs cannot start %s: %s", written, fmt.Sprintf(format, args...)).
		WithHint("use a compiled program instead, or remove it from the setting commands")
	s.missing = append(s.missing, sandbox.MissingCommand{Command: name, Why: why})
}

// addFile adds the executable file as a command, or saves it for addScript if it is a script. It returns an error if
// the file can never be started.
func (s *commandSearch) addFile(name, written, file string) error {
	same, line, err := identifyFile(file)
	if err != nil {
		return err
	}
	if line != "" && isPython(name) { // a shim, as version managers make them
		if file, err = interpreter.PythonAt(file); err != nil {
			return err
		}
		if same, line, err = identifyFile(file); err != nil {
			return err
		}
	}
	if line != "" {
		s.scripts = append(s.scripts, shebangScript{name, written, file, line, same})
		return nil
	}
	c, err := lookAt(name, file)
	if err == nil {
		s.found[name] = c
	}
	return err
}

// addScript adds a script as a command if its interpreter is also a command, and otherwise records the reason.
func (s *commandSearch) addScript(f shebangScript) {
	words := strings.Fields(f.line)
	if len(words) > 1 && path.Base(words[0]) == "env" {
		words = words[1:]
	}
	if len(words) == 0 || len(words) > 2 || strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=") {
		s.addUnfit(f.name, f.written, "it is a script, and Retort does not understand its first line")
		return
	}
	runner := path.Base(words[0])
	by, ok := s.found[runner]
	switch {
	case slices.ContainsFunc(s.missing, func(m sandbox.MissingCommand) bool { return m.Command == f.name }):
		return // two have its name
	case !ok || by.script != "":
		s.addUnfit(f.name, f.written, "it is a script that %s must run, but %s is not one of the commands", runner, runner)
		return
	}
	c := &HostCommand{Name: f.name, Inside: by.Inside, Same: by.Same, path: by.path, script: f.file, scriptSame: f.same}
	c.prefix = append(append([]string{}, words[1:]...), f.file)
	c.Image = sync.OnceValues(func() (*interpreter.FileImage, error) { return withScript(by, f.file) })
	s.found[f.name] = c
}

// withScript returns the files that a script needs: the files of its interpreter and the script itself or, if the
// script belongs to an npm package, the folder of that package.
func withScript(by *HostCommand, file string) (*interpreter.FileImage, error) {
	image, err := by.Image()
	if err != nil {
		return nil, err
	}
	return image.WithFile(packageOf(file)), nil
}

// packageOf returns the folder of the installed npm package that a file belongs to, or the file itself if it belongs
// to none. A command sees no other folder of the host, because other folders could contain private data.
func packageOf(file string) string {
	for dir := path.Dir(file); dir != "/"; dir = path.Dir(dir) {
		above := path.Dir(dir)
		if strings.HasPrefix(path.Base(above), "@") {
			above = path.Dir(above)
		}
		if _, err := os.Stat(path.Join(dir, "package.json")); err == nil && path.Base(above) == "node_modules" {
			return dir
		}
	}
	return file
}

// identifyFile returns the identity of a file and the text after "#!" in its first line. It returns an error for
// files that must never be started, such as setuid files.
func identifyFile(file string) (same confine.FileIdentity, line string, err error) {
	f, err := openRegular(file)
	if err != nil {
		return same, "", err
	}
	defer f.Close()
	same, mode, err := confine.IdentifyFile(f)
	switch {
	case err != nil:
		return same, "", err
	case mode&unix.S_IFMT != unix.S_IFREG:
		return same, "", errors.New("it is not a regular file")
	case mode&(unix.S_ISUID|unix.S_ISGID) != 0:
		return same, "", errors.New("it is setuid or setgid, which is not allowed")
	}
	head := make([]byte, 256)
	n, _ := f.ReadAt(head, 0)
	rest, isScript := strings.CutPrefix(string(head[:n]), "#!")
	if isScript {
		line, _, _ = strings.Cut(rest, "\n")
		if line = strings.TrimSpace(line); line == "" {
			return same, "", errors.New("it is a script whose first line does not name an interpreter")
		}
	}
	return same, line, nil
}

func isPython(name string) bool {
	return strings.HasPrefix(name, "python") && strings.Trim(name[len("python"):], "0123456789.") == ""
}

// lookAt returns the command for an executable file. It records the file's identity, so that no other file can be
// started in its place later.
func lookAt(name, file string) (*HostCommand, error) {
	f, err := openRegular(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	same, _, err := confine.IdentifyFile(f)
	if err != nil {
		return nil, err
	}
	parsed, err := elf.NewFile(f)
	if err != nil {
		return nil, fmt.Errorf("it is not a program for this system: %w", err)
	}
	if parsed.Type != elf.ET_EXEC && parsed.Type != elf.ET_DYN {
		return nil, fmt.Errorf("it is not a program (%v)", parsed.Type)
	}
	c := &HostCommand{Name: name, Inside: path.Join(interpreter.BinDir, name), Same: same, path: file}
	if isPython(name) {
		c.Inside = path.Join(interpreter.BinDir, path.Base(file)) // it looks for its library relative to this path
		c.Image = sync.OnceValues(func() (*interpreter.FileImage, error) { return interpreter.PythonImage(c.Inside, file) })
		return c, nil
	}
	c.Image = sync.OnceValues(func() (*interpreter.FileImage, error) { return interpreter.NewImage(c.Inside, file) })
	return c, nil
}

// openRegular opens a regular file. It refuses symbolic links and does not block on a named pipe.
func openRegular(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

// Open opens the command's file and returns an error if it has changed since it was found. After reading the file,
// the caller must call CheckFile to detect a change in the meantime.
func (c *HostCommand) Open() (*os.File, error) {
	f, err := openRegular(c.path)
	if err != nil {
		return nil, err
	}
	if err := c.CheckFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// CheckFile returns an error if the open file has changed since the command was found.
func (c *HostCommand) CheckFile(f *os.File) error {
	same, _, err := confine.IdentifyFile(f)
	if err == nil && same != c.Same {
		return confine.ErrOther
	}
	return err
}

// CheckStandalone returns an error if the command is a script or needs whole folders of the host, which a sandbox
// that copies single files cannot provide.
func (c *HostCommand) CheckStandalone() *core.Error {
	f, err := c.Open() // before Image reads it
	if errors.Is(err, confine.ErrOther) {
		return ChangedError(c.Name)
	}
	if err != nil {
		return UnstartableError(c.Name, err)
	}
	_ = f.Close()
	image, err := c.Image()
	if err != nil {
		return UnstartableError(c.Name, err)
	}
	for _, source := range image.Sources {
		if info, err := os.Stat(source); err == nil && info.IsDir() || c.script != "" {
			return RefusedError(
				"%s needs folders of the machine, and commands can use those only in the process sandbox", c.Name,
			).WithHint("run the program with sandbox: process")
		}
	}
	return nil
}
