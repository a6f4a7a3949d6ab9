package approval

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// JournalStore stores the journals of executions that wait for a person, in one directory. A journal lists the calls
// that were sent. It is read after the engine that wrote it has died.
type JournalStore struct{ dir string }

// NewJournals returns a JournalStore in dir, which need not exist. It removes journals that are older than a week.
func NewJournals(dir string) *JournalStore {
	const old = 7 * 24 * time.Hour
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > old {
			_ = os.Remove(name)
		}
	}
	return &JournalStore{dir}
}

// CallJournal records the calls that one execution has sent. Until MakeDurable is called, it exists only in memory.
// It is safe for concurrent use.
type CallJournal struct {
	path string

	mu   sync.Mutex
	file *os.File
	sent []core.SentCall
	size int // of the arguments in sent
}

const (
	alphanumericLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	longestName         = 64
)

// isPlainName reports whether an execution's id can be a file name: 1 to longestName letters and digits.
func isPlainName(execution string) bool {
	return execution != "" && len(execution) <= longestName && strings.Trim(execution, alphanumericLetters) == ""
}

func (j *JournalStore) filePath(execution string) string {
	if !isPlainName(execution) {
		return ""
	}
	return filepath.Join(j.dir, execution+".jsonl")
}

// NewJournal returns an empty journal for an execution. It creates no file.
func (j *JournalStore) NewJournal(execution string) *CallJournal {
	return &CallJournal{path: j.filePath(execution)}
}

// Add adds a call that is about to be sent. If the journal is on disk, the entry is durable when Add returns. If Add
// fails, the call must not be sent.
func (j *CallJournal) Add(c core.SentCall) error {
	const most = 256 << 10
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.size += len(c.Arguments); j.size > most {
		c.Arguments = nil
	}
	j.sent = append(j.sent, c)
	if j.file == nil {
		return nil
	}
	return j.writeCalls(c)
}

func (j *CallJournal) writeCalls(calls ...core.SentCall) error {
	var lines []byte
	for _, c := range calls {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if _, err := j.file.Write(lines); err != nil {
		return err
	}
	return j.file.Sync()
}

// MakeDurable writes the journal to disk. From then on, each added call is durable, too.
func (j *CallJournal) MakeDurable() (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		return nil
	}
	if j.path == "" {
		return errors.New("the execution's id is not valid as a file name")
	}
	if err := os.MkdirAll(filepath.Dir(j.path), 0o700); err != nil {
		return err
	}
	if j.file, err = os.OpenFile(j.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = j.file.Close()
			_ = os.Remove(j.path)
			j.file = nil
		}
	}()
	if err = seal.LockFile(j.file, 0); err != nil {
		return err
	}
	if err = j.writeCalls(j.sent...); err != nil {
		return err
	}
	return syncDir(filepath.Dir(j.path))
}

func syncDir(dir string) error {
	return seal.SyncDir(dir)
}

// StopWriting closes the journal and keeps its file for later readers.
func (j *CallJournal) StopWriting() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		_ = j.file.Close()
		j.file = nil
	}
}

// RemoveFile closes the journal and deletes its file, if it has one.
func (j *CallJournal) RemoveFile() {
	j.mu.Lock()
	kept := j.file != nil
	j.mu.Unlock()
	if kept {
		_ = os.Remove(j.path)
		j.StopWriting()
	}
}

// ReadLost returns the calls of an execution whose engine has died. The error is fs.ErrNotExist if there is no such
// journal, and ErrAlive if the engine still runs.
func (j *JournalStore) ReadLost(execution string) ([]core.SentCall, error) {
	path := j.filePath(execution)
	if path == "" {
		return nil, fs.ErrNotExist
	}
	f, err := seal.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if seal.LockFile(f, 0) != nil {
		return nil, ErrAlive
	}
	sent := []core.SentCall{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c core.SentCall
		if json.Unmarshal(lines.Bytes(), &c) != nil {
			break // cut off when the engine died, so the call was not sent
		}
		sent = append(sent, c)
	}
	return sent, nil
}

// ErrAlive is returned for an execution whose engine still runs.
var ErrAlive = errors.New("it belongs to another engine")
