package jobs

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// fileStore stores each job in its own file, which is encrypted and authenticated with a key. The file of one job is
// rejected under the name of another job.
type fileStore struct {
	dir, marks string
	cipher     cipher.AEAD
}

// storedJob holds the stored form of a job.
type storedJob struct {
	core.JobState
	// Payload holds the content of the job while it is queued. It is nil once the job has begun.
	Payload json.RawMessage `json:"payload,omitempty"`
}

const (
	sealedPrefix = "retort task 1\n"
	jobSuffix    = ".task"
	// cancelSuffix is the suffix of a file that asks the owning engine to cancel a job. The name before it is the job's
	// id.
	cancelSuffix = ".cancel"
	maxFile      = 96 << 20
)

// errForeign means that a file was not written by this queue, or was changed since. For example, it may be encrypted
// with another key.
var errForeign = errors.New("its file was not written by this queue")

// plainID reports whether a file may be named after id: 1 to 64 lower-case letters and digits.
func plainID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

func newShelf(dir, marks string, key []byte) (*fileStore, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, "retort queue", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &fileStore{dir: dir, marks: marks, cipher: aead}, err
}

func (s *fileStore) jobPath(id string) string { return filepath.Join(s.dir, id+jobSuffix) }

// writeJob stores a job durably.
func (s *fileStore) writeJob(r storedJob) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return seal.ReplaceFile(s.jobPath(r.ID), s.sealText(text, "task "+r.ID))
}

func (s *fileStore) sealText(text []byte, place string) []byte {
	nonce := make([]byte, s.cipher.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return s.cipher.Seal(append([]byte(sealedPrefix), nonce...), nonce, text, []byte(place))
}

func (s *fileStore) openText(data []byte, place string) ([]byte, error) {
	body, ok := bytes.CutPrefix(data, []byte(sealedPrefix))
	n := s.cipher.NonceSize()
	if !ok || len(body) < n {
		return nil, fmt.Errorf("%w: it was truncated, or written by another version", errForeign)
	}
	text, err := s.cipher.Open(nil, body[:n], body[n:], []byte(place))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, copied from elsewhere, or encrypted with another key", errForeign)
	}
	return text, nil
}

func (s *fileStore) readJob(id string) (r storedJob, err error) {
	data, err := seal.ReadFile(s.jobPath(id), maxFile)
	if err != nil {
		return r, err
	}
	text, err := s.openText(data, "task "+id)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

func (s *fileStore) stampOfJob(id string) seal.FileStamp { return seal.StampOf(s.jobPath(id)) }

// listJobs returns the ids of all jobs, and the ids of the jobs that another process has requested to cancel.
func (s *fileStore) listJobs() (ids, cancelled []string, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), jobSuffix); ok && plainID(id) {
			ids = append(ids, id)
		}
		if id, ok := strings.CutSuffix(e.Name(), cancelSuffix); ok && plainID(id) {
			cancelled = append(cancelled, id)
		}
	}
	return ids, cancelled, err
}

// requestCancel asks the engine that runs the jobs to cancel a job, by writing a file.
func (s *fileStore) requestCancel(id string) error {
	return seal.ReplaceFile(filepath.Join(s.dir, id+cancelSuffix), s.sealText(nil, "cancel "+id))
}

// isAsked reports whether another process has requested to cancel the job. It removes the file with the request, and
// ignores a request that is not authentic.
func (s *fileStore) isAsked(id string) bool {
	path := filepath.Join(s.dir, id+cancelSuffix)
	data, err := seal.ReadFile(path, seal.MaxFile)
	_ = os.Remove(path)
	if err != nil {
		return false
	}
	_, err = s.openText(data, "cancel "+id)
	return err == nil
}

func (s *fileStore) removeJob(id string) error {
	_ = os.Remove(filepath.Join(s.dir, id+cancelSuffix))
	return os.Remove(s.jobPath(id))
}

// errBegun means that a job is already marked as begun.
var errBegun = errors.New("it had already started")

// markBegun durably marks a job as begun. If it is already marked, the error is errBegun. The mark is stored outside
// the job's file, so that restoring an old file does not run the job again.
func (s *fileStore) markBegun(id string) error {
	if err := os.MkdirAll(s.marks, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.marks, id), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return errBegun
	}
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	_ = seal.SyncDir(s.marks) // not every system has it
	return nil
}

// removeMark removes the mark that a job has begun, for a job that was marked but could not start.
func (s *fileStore) removeMark(id string) { _ = os.Remove(filepath.Join(s.marks, id)) }

func (s *fileStore) hasBegun(id string) bool {
	_, err := os.Stat(filepath.Join(s.marks, id))
	return err == nil // only begin must succeed
}

// removeOldMarks removes marks that jobs have begun. It removes only marks so old that their jobs can no longer be
// started.
func (s *fileStore) removeOldMarks(now time.Time) {
	entries, _ := os.ReadDir(s.marks)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > 2*maxDeadline {
			_ = os.Remove(filepath.Join(s.marks, e.Name()))
		}
	}
}

// sortBySubmission sorts jobs by their time of submission.
func sortBySubmission(all []*jobEntry) []*jobEntry {
	slices.SortFunc(all, func(a, b *jobEntry) int {
		if c := a.Submitted.Compare(b.Submitted); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}
