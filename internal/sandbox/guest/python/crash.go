package python

import (
	"regexp"
	"strconv"
)

// deepStackFrames is the number of frames in a crash report from which a call stack counts as too deep. It is a
// little less than the maximum that Python's faulthandler prints, because some frames may belong to other threads or
// be lost.
const deepStackFrames = 90

var dumped = regexp.MustCompile(`(?m)^  File "([^"\n]*)", line (\d+) in `)

// ParseCrash parses the interpreter's standard error after a crash. It returns the line that was running in the
// program named file, or 0 if unknown, and whether the call stack was too deep.
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
