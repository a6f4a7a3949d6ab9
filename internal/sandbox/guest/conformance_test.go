package guest

import (
	"flag"
	"testing"

	"retort/internal/sandbox/guest/guesttest"
)

var update = flag.Bool("update", false, "write what programs do into package guesttest")

// reference is the name of the JavaScript runtime whose results the tests expect from all other runtimes.
const reference = "quickjs"

func TestPrograms(t *testing.T) {
	s := guesttest.ProgramSuite{Runtime: reference, AtOnce: 2, Update: *update, Run: runProgram}
	s.RunPrograms(t)
}
