package reaper

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// Serve is the whole life of the helper process: it reads from r, its standard
// input, which groups to watch. When r ends, the process that wrote to it is
// gone, and Serve kills the groups that are left. It ignores the signals that
// ask a process to end.
func Serve(r io.Reader) {
	ignoreSignals()
	watched := map[int]string{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		note(watched, lines.Text())
	}
	for pid, start := range watched {
		killGroup(pid, start)
	}
}

// note takes down one line of the protocol; what is no such line is ignored.
func note(watched map[int]string, line string) {
	if len(line) == 0 {
		return
	}
	first, start, _ := strings.Cut(line[1:], " ")
	pid, err := strconv.Atoi(first)
	switch {
	case err != nil || pid <= 1:
	case line[0] == '+':
		watched[pid] = start
	case line[0] == '-':
		delete(watched, pid)
	}
}
