package python

import (
	"regexp"
	"strconv"
)

// deepest is how many frames faulthandler shows at most, less some that other
// threads and lost bytes may cost.
const deepest = 90

var dumped = regexp.MustCompile(`(?m)^  File "([^"\n]*)", line (\d+) in `)

// Crash reads what the interpreter said on its standard error when it crashed:
// the line that ran then of the program named file, 0 if that is not said, and
// whether functions called each other too deeply.
func Crash(stderr, file string) (line int, deep bool) {
	frames := dumped.FindAllStringSubmatch(stderr, -1)
	for _, f := range frames {
		if f[1] == file || f[1] == "program.py" { // what a name becomes that is not plain
			if n, err := strconv.Atoi(f[2]); err == nil {
				line = n
			}
			break
		}
	}
	return line, len(frames) >= deepest
}
