package jobs

import (
	"path/filepath"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// reserveName keeps other processes from using the name of a new job until free is called. It does nothing if name is
// empty.
func (q *Queue) reserveName(name string) (free func(), err error) {
	const patience = 10 * time.Second // the others write one file
	if name == "" {
		return func() {}, nil
	}
	free, err = seal.Lock(filepath.Join(q.o.Dir, "names.lock"), patience)
	if err != nil {
		return nil, core.Errorf(
			core.KindInternal, "queue.submit",
			"Retort could not check that the id %s is free, so the job was not accepted: %w", name, err,
		)
	}
	return free, nil
}

// checkNameFree returns an error if the principal (the user who submits the job) already has a job with this name that
// has not ended. It ignores jobs of other principals, because an error would reveal that they exist. The caller must
// hold mu.
func (q *Queue) checkNameFree(principal, name string) error {
	if name == "" {
		return nil
	}
	if err := q.readFolder(); err != nil { // what others have submitted counts at once
		return err
	}
	for _, e := range q.tasks {
		if e.Principal == principal && !e.Status.HasEnded() && (e.Name == name || e.ID == name) {
			return NameTaken(name)
		}
	}
	return nil
}

// NameTaken returns the error for a job name that another job of the same user already has.
func NameTaken(name string) *core.Error {
	return core.Errorf(core.KindInvalidArguments, "queue.submit", "a job with the id %s has not ended yet", name).
		WithHint("wait for it, cancel it, or choose another id")
}

// findNamed returns the principal's latest job with this name, or nil. The principal "" may see all jobs. If several
// jobs have the name, those without a principal are preferred for it. The caller must hold mu.
func (q *Queue) findNamed(principal, name string) (found *jobEntry) {
	for _, e := range q.tasks {
		switch {
		case name == "" || e.Name != name || principal != "" && e.Principal != principal:
		case found == nil, e.Principal == "" && found.Principal != "":
			found = e
		case (e.Principal == "") == (found.Principal == "") && e.Submitted.After(found.Submitted):
			found = e
		}
	}
	return found
}
