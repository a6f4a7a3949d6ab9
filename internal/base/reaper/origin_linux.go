package reaper

import (
	"errors"
	"os"
	"slices"
)

var (
	errStarted = errors.New("processes that an engine has started, and their children, may not answer")
	errLineage = errors.New("it cannot be determined which process started the one that answers")
)

// CheckOrigin returns an error if a process is a descendant of this process or of another engine, or if its ancestry
// cannot be determined.
func CheckOrigin(pid int) error {
	before, err := processLineage(pid)
	if err != nil {
		return err
	}
	for i, s := range before {
		// The process itself may be an engine that a person has started.
		if s.PID == os.Getpid() || hasThread(s.PID, keeperThread) || i > 0 && hasThread(s.PID, engineThread) {
			return errStarted
		}
	}
	// Whoever is still there is who was looked at.
	after, err := processLineage(pid)
	if err != nil || !slices.EqualFunc(before, after, func(a, b ProcessStat) bool { return a.PID == b.PID && a.Start == b.Start }) {
		return errLineage
	}
	return nil
}

// processLineage returns a process, its parent, its grandparent and so on. The last one is the first process that is
// visible in this PID namespace.
func processLineage(pid int) (all []ProcessStat, err error) {
	const deepest = 1000
	for len(all) < deepest {
		s, err := withParent(pid)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
		if pid == 1 || s.Parent == 0 {
			return all, nil
		}
		pid = s.Parent
	}
	return nil, errLineage
}

// withParent returns the ProcessStat of a process while its parent is alive. The parent may end during the check, and
// another process may get its id. Therefore withParent reads the process a second time after it has found the parent
// alive. It requires that the parent's id is unchanged.
func withParent(pid int) (ProcessStat, error) {
	for range 10 {
		before, err := ReadStat(pid)
		if err != nil {
			return ProcessStat{}, errLineage
		}
		if before.Parent == 0 {
			return before, nil
		}
		_, gone := ReadStat(before.Parent)
		after, err := ReadStat(pid)
		if err != nil {
			return ProcessStat{}, errLineage
		}
		if gone == nil && after.Parent == before.Parent && after.Start == before.Start {
			return after, nil
		}
	}
	return ProcessStat{}, errLineage
}
