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

// journal lists the changes that install made to one file, oldest first. It is written before the file. The hashes in
// it show whether the last change was completed.
type journal struct {
	Client string `json:"client"`
	File   string `json:"file"` // behind links
	Steps  []step `json:"steps"`

	path string // of the journal, without .json
}

// step describes one write of a client's file.
type step struct {
	Time    time.Time   `json:"time"`
	Existed bool        `json:"existed"`
	Mode    fs.FileMode `json:"mode"`
	Before  string      `json:"before"` // SHA-256 of the file
	After   string      `json:"after"`
	Backup  string      `json:"backup"`            // name of the file with what was there before
	Entry   string      `json:"entry"`             // name of ours
	Command string      `json:"command,omitempty"` // with which it starts Retort
	Removed []removal   `json:"removed"`
}

// removal lists the members that were removed from one object of servers.
type removal struct {
	At      []string `json:"at"`
	Members []member `json:"members"`
}

// openJournal reads the journal of a file. If it does not exist, the journal has no steps.
func openJournal(data home.Dir, client, target string) (*journal, error) {
	path := filepath.Join(data.Clients(), client+"-"+hash([]byte(target))[:16])
	j := &journal{Client: client, File: target, path: path}
	text, err := readBounded(path + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err == nil {
		err = json.Unmarshal(text, j)
	}
	if err == nil && (j.File != target || j.Client != client) {
		err = errors.New("it is the journal of another file")
	}
	if err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "clients.journal", "%s.json: %w", path, err).
			WithHint("the backups next to it hold the earlier content of the file")
	}
	return j, nil
}

// begin writes a backup and the journal with a new step before the step is done.
func (j *journal) begin(s step, before []byte) error {
	s.Backup = filepath.Base(j.path) + "." + strconv.Itoa(len(j.Steps)+1) + ".orig"
	if err := seal.Replace(filepath.Join(filepath.Dir(j.path), s.Backup), before); err != nil {
		return fileError(j.path, err)
	}
	j.Steps = append(j.Steps, s)
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	if err := seal.Replace(j.path+".json", append(text, '\n')); err != nil {
		return fileError(j.path, err)
	}
	return nil
}

// backup returns the content of the file before a step.
func (j *journal) backup(s step) ([]byte, error) {
	text, err := readBounded(filepath.Join(filepath.Dir(j.path), filepath.Base(s.Backup)))
	if err == nil && hash(text) != s.Before {
		err = fmt.Errorf("the backup %s was changed after it was written", s.Backup)
	}
	if err != nil {
		return nil, fileError(j.path+".json", err)
	}
	return text, nil
}

// settle drops the steps that the content of the file shows were not completed, or were reverted by hand.
func (j *journal) settle(f file, installed bool) {
	for i, s := range j.Steps {
		if now := hash(f.src); now == s.Before && now != s.After {
			j.Steps = j.Steps[:i]
			break
		}
	}
	if !installed {
		j.Steps = nil
	}
}

// end removes the journal and its backups after the file is restored.
func (j *journal) end() {
	backups, _ := filepath.Glob(escapeGlob(j.path) + ".*.orig")
	for _, b := range append(backups, j.path+".json") {
		_ = os.Remove(b) // a file that stays does no harm
	}
}
