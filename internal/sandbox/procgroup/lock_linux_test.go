package procgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"retort/internal/devel/testenv"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "engine":
		lockingEngine(os.Args[2])
	case len(os.Args) > 2 && os.Args[1] == "child":
		_, _ = io.Copy(io.Discard, os.Stdin) // until the other end is closed
	default:
		os.Exit(m.Run())
	}
}

// lockingEngine implements the main function of an engine that locks a file, starts a child that inherits the open
// file, and waits to be killed.
func lockingEngine(name string) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	child := exec.Command("/proc/self/exe", "child", "of")
	child.ExtraFiles, child.Stdin = []*os.File{f}, os.Stdin
	if err == nil {
		err = child.Start()
	}
	fmt.Println(err)
	testenv.Hang()
}

func TestAbandoned(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	cmd := exec.Command("/proc/self/exe", "engine", name)
	out, err := cmd.StdoutPipe()
	hold, err2 := cmd.StdinPipe() // the child lives as long as this is open
	if err = errors.Join(err, err2); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "<nil>\n" {
		t.Fatalf("%q, %v", line, err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !lockerLives(f) || IsAbandoned(f) {
		t.Error("the lock of an engine that lives is taken")
	}
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_, _ = cmd.Process.Wait()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		t.Error("its child does not hold the lock")
	}
	if lockerLives(f) {
		t.Error("an engine that has died is taken for one that lives")
	}
	go hold.Close()
	if !tryLock(f, testenv.Patience) {
		t.Error("the lock of an engine that has died is not taken")
	}
}

func TestAbandonedByNobody(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !IsAbandoned(f) {
		t.Error("a file that nobody has locked is not abandoned")
	}
}
