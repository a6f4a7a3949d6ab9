package clientfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/home"
)

// installJournal lists the changes that install made to one file of a client, oldest first. It is written before the
// file is changed, and contains hashes of the file that show whether the last change was completed.
type installJournal struct {
	Client string        `json:"client"`
	File   string        `json:"file"` // path of the client's file, with symbolic links resolved
	Steps  []installStep `json:"steps"`

	path string // path of the journal, without the suffix .json
}

// installStep describes one change that install made to a client's file.
type installStep struct {
	Time    time.Time        `json:"time"`
	Existed bool             `json:"existed"`
	Mode    fs.FileMode      `json:"mode"`
	Before  string           `json:"before"` // SHA-256 of the file before the change
	After   string           `json:"after"`
	Backup  string           `json:"backup"`            // name of the backup with the content before the change
	Entry   string           `json:"entry"`             // name of the entry for Retort
	Command string           `json:"command,omitempty"` // command with which the entry starts Retort
	Removed []removedMembers `json:"removed"`
}

// removedMembers lists the servers that install removed from one object in a client's file, and the keys that lead to
// this object.
type removedMembers struct {
	At      []string       `json:"at"`
	Members []objectMember `json:"members"`
}

// openJournal reads the journal of the changes that install made to a client's file, which is named by target. If
// the journal does not exist, it has no steps.
func openJournal(data home.Dir, client, target string) (*installJournal, error) {
	path := filepath.Join(data.Clients(), client+"-"+hashHex([]byte(target))[:16])
	j := &installJournal{Client: client, File: target, path: path}
	text, err := readBounded(path + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err == nil {
		err = json.Unmarshal(text, j)
	}
	if err == nil && (j.File != target || j.Client != client) {
		err = errors.New("it is the journal for another file")
	}
	if err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "clients.journal", "%s.json: %w", path, err).
			WithHint("the backups next to it hold the earlier content of the file")
	}
	return j, nil
}

// beginStep records a change of the client's file before the change is made: it writes a backup of the file, and then
// the journal with the new step.
func (j *installJournal) beginStep(s installStep, before []byte) error {
	s.Backup = filepath.Base(j.path) + "." + strconv.Itoa(len(j.Steps)+1) + ".orig"
	if err := seal.ReplaceFile(filepath.Join(filepath.Dir(j.path), s.Backup), before); err != nil {
		return fileError(j.path, err)
	}
	j.Steps = append(j.Steps, s)
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	if err := seal.ReplaceFile(j.path+".json", append(text, '\n')); err != nil {
		return fileError(j.path, err)
	}
	return nil
}

// readBackup returns the content that the client's file had before a step, from the backup that was written then. It
// returns an error if the backup was changed since.
func (j *installJournal) readBackup(s installStep) ([]byte, error) {
	text, err := readBounded(filepath.Join(filepath.Dir(j.path), filepath.Base(s.Backup)))
	if err == nil && hashHex(text) != s.Before {
		err = fmt.Errorf("the backup %s was changed after it was written", s.Backup)
	}
	if err != nil {
		return nil, fileError(j.path+".json", err)
	}
	return text, nil
}

// dropStaleSteps drops the steps of the journal that are not in effect in the file f: those that were never
// completed, and those that somebody has reverted by hand.
func (j *installJournal) dropStaleSteps(f clientFile, installed bool) {
	for i, s := range j.Steps {
		if now := hashHex(f.src); now == s.Before && now != s.After {
			j.Steps = j.Steps[:i]
			break
		}
	}
	if !installed {
		j.Steps = nil
	}
}

// removeFiles removes the journal and its backups after the file is restored.
func (j *installJournal) removeFiles() {
	backups, _ := filepath.Glob(escapeGlob(j.path) + ".*.orig")
	for _, b := range append(backups, j.path+".json") {
		_ = os.Remove(b) // a file that stays does no harm
	}
}
