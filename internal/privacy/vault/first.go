package vault

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
)

// upgradeV1 converts a file of format version 1 to the current format. The old format has no mark at the beginning of
// the file and derives its key differently. Its frames hold up to 50,000 lines of JSON, and each line is one entry.
func (s *TokenSession) upgradeV1(data *os.File, secret []byte) (*sessionFile, []byte, error) {
	cipher, err := derivedAEAD(secret[:keySize], "session "+s.id)
	if err != nil {
		return nil, nil, err
	}
	old := &sessionFile{File: data, id: s.id, seal: cipher}
	return s.createFile(old.readV1)
}

// readV1 calls put with every entry of a file of format version 1, in the order in which they were written.
func (f *sessionFile) readV1(put func(*TokenEntry) error) error {
	in := bufio.NewReaderSize(io.NewSectionReader(f.File, 0, 1<<62), 64<<10)
	for ; ; f.frames++ {
		plain, _, err := f.nextFrame(in)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // its writer died before it was complete
		}
		if err != nil {
			return err
		}
		for d := json.NewDecoder(bytes.NewReader(plain)); d.More(); {
			var e struct {
				Type   string   `json:"t"`
				Number int      `json:"n"`
				Value  string   `json:"v"`
				Digits bool     `json:"d"`
				From   []string `json:"s"`
			}
			if err := d.Decode(&e); err != nil {
				return err
			}
			if e.Number < 1 || e.Number > maxNumber {
				return errors.New("an entry has an invalid number")
			}
			if err := put(&TokenEntry{Type: e.Type, Number: e.Number, Value: e.Value, Digits: e.Digits, From: e.From}); err != nil {
				return err
			}
		}
	}
}
