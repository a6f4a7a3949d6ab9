package python

import (
	"regexp"
	"strconv"
)

// deepStackFrames is the number of frames in a crash report from which a stack counts as too deep. It is the most
// that Python's faulthandler prints, minus some for other threads and lost bytes.
const deepStackFrames = 90

var dumped = regexp.MustCompile(`(?m)^  File "([^"\n]*)", line (\d+) in `)

// ParseCrash reads the interpreter's standard error after a crash. It returns the line of the program named file that was
// running, or 0 if unknown, and whether the stack was too deep.
func ParseCrash(stderr, file string) (line int, deep bool) {
	frames := dumped.FindAllStringSubmatch(stderr, -1)
	for _, f := range frames {
		if f[1] == file || f[1] == "program.py" { // the file name if the program's name is not plain
			if n, err := strconv.Atoi(f[2]); err == nil {
				line = n
			}
			break
		}
	}
	return line, len(frames) >= deepStackFrames
}
