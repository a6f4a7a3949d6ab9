package audit

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"retort/internal/base/seal"
)

// Checkpoint records the sequence number and hash of a chain's last entry at some time. It is signed and stored
// apart from the chain, so that a truncated or replaced chain is detected.
type Checkpoint struct {
	Chain string    `json:"chain"`
	Seq   int64     `json:"seq"`
	Hash  string    `json:"hash"`
	At    time.Time `json:"at"`
	Home  string    `json:"home,omitempty"` // data directory of the audit log
	Key   string    `json:"key"`            // public Ed25519 key, in base64
	Sig   string    `json:"sig"`            // signature of this JSON object without the field sig
}

func (c Checkpoint) signedText() []byte {
	c.Sig = ""
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	return text
}

func (c Checkpoint) withSignature(key ed25519.PrivateKey) Checkpoint {
	c.Key = base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	c.Sig = base64.StdEncoding.EncodeToString(ed25519.Sign(key, c.signedText()))
	return c
}

// isSignedBy reports whether the checkpoint has a valid signature by key. If key is nil, it uses the key that the
// checkpoint itself contains.
func (c Checkpoint) isSignedBy(key ed25519.PublicKey) bool {
	return verifySignature(key, c.Key, c.Sig, c.signedText())
}

func verifySignature(key ed25519.PublicKey, named, signature string, text []byte) bool {
	by, err := base64.StdEncoding.DecodeString(named)
	sig, err2 := base64.StdEncoding.DecodeString(signature)
	if err != nil || err2 != nil || len(by) != ed25519.PublicKeySize || key != nil && !bytes.Equal(key, by) {
		return false
	}
	return ed25519.Verify(by, text, sig)
}

// checkpointWriter writes checkpoints of the end of a chain. After every commit it overwrites the file CHAIN.head. At
// intervals it also appends the checkpoint as a line to a history file, from which lines are never removed.
type checkpointWriter struct {
	dir    string
	chain  string
	home   string
	sign   ed25519.PrivateKey
	every  time.Duration
	onLine func(line []byte) // is called with each line of the history file; may be nil

	head   *os.File
	last   Checkpoint // the newest checkpoint in the history file
	wrote  time.Time
	failed bool
}

const (
	headSize        = 1024 // size of a file CHAIN.head in bytes, padded with blanks
	linesFile       = "checkpoints.jsonl"
	maxBetweenLines = 1000 // maximum number of entries between two lines of the history file
)

func (c *checkpointWriter) openFiles() (err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	c.head, err = seal.OpenFile(c.headPath(), os.O_RDWR|os.O_CREATE, 0o600)
	return err
}

func (c *checkpointWriter) headPath() string { return filepath.Join(c.dir, c.chain+".head") }

// recordDurable writes to the file CHAIN.head that all entries up to number seq are durable. It does not sync
// CHAIN.head, so after a power loss this file may name an earlier entry, but never a later one than the chain has.
// recordDurable also appends a line to the history file if the last line there is too old or too many entries
// back, or if end is true.
func (c *checkpointWriter) recordDurable(seq int64, hash []byte, now time.Time, end bool) error {
	if c.head == nil {
		if err := c.openFiles(); err != nil {
			return err
		}
	}
	point := Checkpoint{Chain: c.chain, Seq: seq, Hash: encodeHex(hash), At: now.UTC(), Home: c.home}.withSignature(c.sign)
	line, err := json.Marshal(point)
	if err != nil {
		return err
	}
	filled := append(line, bytes.Repeat([]byte(" "), max(0, headSize-len(line)-1))...)
	if _, err := c.head.WriteAt(append(filled, '\n'), 0); err != nil {
		return err
	}
	if !end && seq-c.last.Seq < maxBetweenLines && now.Sub(c.wrote) < c.every && c.last.Seq > 0 || seq == c.last.Seq {
		return nil
	}
	if c.onLine != nil {
		c.onLine(line)
	}
	if err := c.appendLine(line); err != nil {
		return err
	}
	c.last, c.wrote = point, now
	return nil
}

// appendLine appends a checkpoint, encoded as one line, to the history file and syncs this file to disk.
func (c *checkpointWriter) appendLine(line []byte) error {
	f, err := seal.OpenFile(filepath.Join(c.dir, linesFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line[:len(line):len(line)], '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

func (c *checkpointWriter) closeFiles() {
	if c.head != nil {
		_ = c.head.Sync()
		_ = c.head.Close()
	}
}

// readHead returns the newest checkpoint of a chain, from the file CHAIN.head. It returns the zero Checkpoint if
// the file has none.
func readHead(dir, chain string) (Checkpoint, error) {
	if dir == "" {
		return Checkpoint{}, nil
	}
	text, err := readSome(filepath.Join(dir, chain+".head"), headSize)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(text)) == 0 {
		return Checkpoint{}, nil
	}
	var c Checkpoint
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return c, err
}

// steadyHead reads the file CHAIN.head, to which an engine may be writing a new checkpoint at the same time. It tries
// up to three times until the checkpoint has a valid signature.
func steadyHead(dir, chain string) (c Checkpoint, err error) {
	for range 3 {
		if c, err = readHead(dir, chain); err == nil && (c.Chain == "" || c.isSignedBy(nil)) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return c, err
}

// readSome returns the beginning of a file, up to the given number of bytes.
func readSome(path string, most int64) ([]byte, error) {
	f, err := seal.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// eachCheckpoint yields all checkpoints in the folder dir: first the newest one of each chain, from its file
// CHAIN.head, then those in the history file. For a checkpoint that cannot be read it yields an error that names the
// file.
func eachCheckpoint(dir string) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		heads, _ := filepath.Glob(filepath.Join(dir, "*.head"))
		for _, path := range heads {
			name := filepath.Base(path)
			head, err := steadyHead(dir, strings.TrimSuffix(name, ".head"))
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			if (err != nil || head.Chain != "") && !yield(head, err) {
				return
			}
		}
		for c, err := range ReadCheckpoints(filepath.Join(dir, linesFile)) {
			if errors.Is(err, fs.ErrNotExist) {
				return
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// maxLine bounds the size of a checkpoint, in bytes.
const maxLine = 64 << 10

// ReadCheckpoints yields the checkpoints of a file that contains one checkpoint in each line. It ignores an
// incomplete last line.
func ReadCheckpoints(path string) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		f, err := seal.Open(path)
		if err != nil {
			yield(Checkpoint{}, err)
			return
		}
		defer f.Close()
		in := bufio.NewReaderSize(f, maxLine)
		for n := 1; ; n++ {
			line, err := in.ReadSlice('\n')
			if err == io.EOF {
				return
			}
			var c Checkpoint
			if err == nil {
				err = json.Unmarshal(line, &c)
			}
			if err != nil {
				err = fmt.Errorf("%s:%d: %w", filepath.Base(path), n, err)
			}
			if !yield(c, err) || errors.Is(err, bufio.ErrBufferFull) {
				return
			}
		}
	}
}
