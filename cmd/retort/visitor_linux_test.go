package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"retort/internal/core"
)

// visitor is a program for tests that connects to the engines' approval sockets in .retort/approvals without the
// retort command. It lists the waiting approvals, approves each with scope "always" and prints the replies. Its
// arguments are the ids of further approvals, which it approves without having listed them. With -terminal as the
// first argument, it runs in a new terminal.
func visitor() {
	arguments := os.Args[1:]
	if len(arguments) > 0 && arguments[0] == "-terminal" {
		fmt.Println(inTerminal(arguments[1:]))
		return
	}
	_, _ = syscall.Setsid() // as in detach
	sockets, _ := filepath.Glob(".retort/approvals/*.sock")
	for _, socket := range sockets {
		listed := askDesk(socket, "{}")
		fmt.Printf("listed: %s", listed)
		var list struct{ Waiting []core.Approval }
		_ = json.Unmarshal([]byte(listed), &list)
		for _, id := range arguments {
			list.Waiting = append(list.Waiting, core.Approval{ID: id})
		}
		for _, a := range list.Waiting {
			fmt.Printf("approved: %s", askDesk(socket, fmt.Sprintf(`{"decide": {"id": %q, "digest": %q, "answer": {"approve": true, "scope": "always"}}}`, a.ID, a.Digest)))
		}
	}
}

func askDesk(socket, line string) string {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return err.Error() + "\n"
	}
	defer c.Close()
	fmt.Fprintln(c, line)
	answer, _ := io.ReadAll(c)
	return string(answer)
}

// inTerminal runs a visitor as the foreground process of a new terminal, and returns the visitor's output.
func inTerminal(arguments []string) string {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return err.Error()
	}
	defer terminal.Close()
	var unlocked, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			return errno.Error()
		}
	}
	other, err := os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return err.Error()
	}
	defer other.Close()
	cmd := exec.Command(os.Args[0], arguments...)
	cmd.Stdin = other
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	said, err := cmd.Output()
	if err != nil {
		return err.Error()
	}
	return string(said)
}
