package commands

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/interpreter"
	"retort/internal/pipeline/isolate/process/walls"
	"retort/internal/run"
)

// Look finds the programs that settings name, by names that are looked for in PATH
// now, or by absolute paths. One that is not there is noted; one that could never be started,
// such as a script, is an error.
func Look(written []string) (Set, error) {
	s := Set{found: map[string]*Command{}}
	paths := map[string]string{}
	for _, w := range written {
		name := path.Base(w)
		if before, ok := paths[name]; ok && before != w {
			return Set{}, unfit(w, "programs would call it %s, and so they would %s", name, before)
		} else if ok {
			continue
		}
		paths[name] = w
		if strings.ContainsRune(w, filepath.Separator) && !filepath.IsAbs(w) {
			return Set{}, unfit(w, "a command is a name that is looked for in PATH, or an absolute path")
		}
		found, err := exec.LookPath(w)
		if err == nil && filepath.IsAbs(found) {
			found, err = filepath.EvalSymlinks(found)
		} else if err == nil {
			err = exec.ErrDot
		}
		if err != nil {
			s.missing = append(s.missing, isolate.MissingCommand{Command: name, Why: Refuse("%s is not on this machine: %v", w, err).WithHint("install it, or give its absolute path (commands), and start Retort again")})
			continue
		}
		looked, refused := lookAt(name, found)
		if refused != nil {
			return Set{}, unfit(w, "%v", refused)
		}
		s.found[name] = looked
	}
	return s, nil
}

func unfit(written, format string, args ...any) *run.Error {
	return run.Errorf(run.KindInvalidArguments, "retort.open", "commands: programs cannot start %s: %s", written, fmt.Sprintf(format, args...)).
		WithHint("name a compiled program of its own, or remove it from the setting")
}

// lookAt looks whether a file is a program that can be started by itself. What is
// looked at is what will be started, or nothing: the walls hold it against its identity.
func lookAt(name, file string) (*Command, error) {
	f, err := open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	same, mode, err := walls.Identify(f)
	switch {
	case err != nil:
		return nil, err
	case mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.New("it is no file")
	case mode&(unix.S_ISUID|unix.S_ISGID) != 0:
		return nil, errors.New("it changes its user or group (setuid, setgid), for rights that no program gets")
	}
	head := make([]byte, 2)
	if _, err := f.ReadAt(head, 0); err == nil && string(head) == "#!" {
		return nil, errors.New("it is a script (#!), which another program would have to run")
	}
	parsed, err := elf.NewFile(f)
	if err != nil {
		return nil, fmt.Errorf("it is no program of this system: %w", err)
	}
	if parsed.Type != elf.ET_EXEC && parsed.Type != elf.ET_DYN {
		return nil, fmt.Errorf("it is no program (%v)", parsed.Type)
	}
	c := &Command{Name: name, Inside: path.Join(interpreter.BinDir, name), Same: same, path: file}
	c.Image = sync.OnceValues(func() (*interpreter.Image, error) { return interpreter.NewImage(c.Inside, file) })
	return c, nil
}

// open opens what is no symbolic link, and does not wait for whoever writes a pipe.
func open(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

// Open opens the file, if it is still the one that was looked at. What is read of it then is
// what was looked at, unless Check says otherwise afterwards.
func (c *Command) Open() (*os.File, error) {
	f, err := open(c.path)
	if err != nil {
		return nil, err
	}
	if err := c.Check(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Check says whether an open file is the one that was looked at.
func (c *Command) Check(f *os.File) error {
	same, _, err := walls.Identify(f)
	if err == nil && same != c.Same {
		return walls.ErrOther
	}
	return err
}
