package python

import (
	"flag"
	"testing"

	"retort/internal/sandbox/guest/guesttest"
)

var update = flag.Bool("update", false, "write what programs do into package guesttest")

// TestPrograms checks every second Python program of package guesttest. The tests of package process run the others.
func TestPrograms(t *testing.T) {
	s := newStarter(t).compiled(t)
	suite := guesttest.ProgramSuite{Runtime: "python", Version: s.version, AtOnce: 4, Update: *update, Run: s.run, Of: 2, Part: 1}
	suite.RunPrograms(t)
}
