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
	return killed(t, variable, value, none, func(kill func(), lines int) {
		if lines == 0 {
			time.AfterFunc(after, kill)
		}
	})
}

// KilledAtWork is Killed, a while after the first number: however slow the machine is, it has
// done something by then.
func KilledAtWork(t *testing.T, variable, value string, after time.Duration) (last int) {
	t.Helper()
	return killed(t, variable, value, 0, func(kill func(), lines int) {
		if lines == 1 {
			time.AfterFunc(after, kill)
		}
	})
}

// killed tells at when the program has started, and then of each line how many there are.
func killed(t *testing.T, variable, value string, none int, at func(kill func(), lines int)) (last int) {
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
	kill := func() { _ = c.Process.Kill() }
	last = none
	n := 0
	at(kill, n)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(lines.Text())
		}
		n++
		at(kill, n)
	}
	_ = c.Wait()
	return last
}
