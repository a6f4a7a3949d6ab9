package python

import (
	"strings"
	"testing"
)

func TestCrash(t *testing.T) {
	head := "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
	own := "  File \"/usr/lib/retort/program.py\", line 9 in run\n"
	frame := "  File \"try.py\", line 5 in __getattr__\n"
	for _, c := range []struct {
		stderr string
		line   int
		deep   bool
	}{
		{"", 0, false},
		{"something else", 0, false},
		{head + own, 0, false},
		{head + own + frame + own, 5, false},
		{head + strings.Repeat(frame, 100) + "  ...\n", 5, true},
		{head + strings.Repeat(own, 100), 0, true},
		{"  File \"try.py\", line 99999999999999999999 in f\n", 0, false},
	} {
		if line, deep := ParseCrash(c.stderr, "try.py"); line != c.line || deep != c.deep {
			t.Errorf("%.200q: line %d, deep %v", c.stderr, line, deep)
		}
	}
}
