package testenv

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// Killed starts the test program once more with an environment variable set, kills it
// after a while, and returns the last number that it printed on a line; none if it printed
// none. Any other line fails the test.
func Killed(t *testing.T, variable, value string, after time.Duration, none int) (last int) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), variable+"="+value)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(after, func() { _ = c.Process.Kill() })
	last = none
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(lines.Text())
		}
	}
	_ = c.Wait()
	return last
}
