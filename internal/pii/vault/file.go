package vault

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"retort/internal/seal"
)

// A file of a session is frames, each of which is what one Sync has written:
//
//	u32 length of what follows · nonce (12 bytes) · AES-256-GCM of JSON lines
//
// The additional data of a frame is the session's id with the frame's number, so that
// none can be left out, moved, or brought from elsewhere. A frame that is cut off at the
// end was never told to anybody, and is dropped.
type file struct {
	*os.File
	id     string
	seal   cipher.AEAD
	frames uint64 // that were read or written
	end    int64  // of these, in the file
}

const (
	keySize  = 32
	nameSize = 8 // of the part of a data file's name that its key file tells
	maxFrame = 256 << 20

	maxEntries = 50_000 // of one frame
)

// aead is AES-256-GCM with a key that is derived for one use.
func aead(key []byte, use string) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, "retort vault "+use, keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// wrap is the cipher of sessions' keys.
func (s *Store) wrap() (cipher.AEAD, error) {
	master, err := s.master()
	if err != nil {
		return nil, err
	}
	if len(master) != keySize {
		return nil, fmt.Errorf("the key has %d bytes and needs %d", len(master), keySize)
	}
	return aead(master, "keys")
}

// create makes a file with a new key that holds these entries, and puts it in the place
// of what was there. Before it has, what was there stays; from then on nobody can read
// that, since the new key has overwritten its key.
func (s *Session) create(entries []*Entry) (*file, []byte, error) {
	wrap, err := s.store.wrap()
	if err != nil {
		return nil, nil, err
	}
	secret, nonce := random(keySize+nameSize), random(wrap.NonceSize())
	wrapped := wrap.Seal(nonce, nonce, secret, []byte(s.id))
	path := s.store.dataPath(s.id, secret)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, err
	}
	data, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, err
	}
	f, err := s.sealed(data, secret)
	if err == nil {
		err = f.append(entries)
	}
	if err == nil {
		err = seal.Replace(s.store.keyPath(s.id), wrapped)
	}
	if err != nil {
		return nil, nil, errors.Join(err, data.Close(), os.Remove(path))
	}
	s.store.leave(s.id, path)
	return f, wrapped, nil
}

func (s *Session) sealed(f *os.File, secret []byte) (*file, error) {
	cipher, err := aead(secret[:keySize], "session "+s.id)
	if err != nil {
		return nil, err
	}
	return &file{File: f, id: s.id, seal: cipher}, nil
}

// open opens the file that a key fits.
func (s *Session) open(wrapped []byte) error {
	wrap, err := s.store.wrap()
	if err != nil {
		return err
	}
	if len(wrapped) < wrap.NonceSize() {
		return errors.New("its key is damaged")
	}
	secret, err := wrap.Open(nil, wrapped[:wrap.NonceSize()], wrapped[wrap.NonceSize():], []byte(s.id))
	if err != nil || len(secret) != keySize+nameSize {
		return errors.New("its key was encrypted with another one, or is damaged")
	}
	data, err := os.OpenFile(s.store.dataPath(s.id, secret), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	f, err := s.sealed(data, secret)
	if err != nil {
		return errors.Join(err, data.Close())
	}
	s.file, s.wrapped = f, wrapped
	return nil
}

// read reads what has come since it was read or written the last time.
func (f *file) read(take func(*Entry) error) error {
	if info, err := f.Stat(); err != nil || info.Size() == f.end {
		return err
	}
	if _, err := f.Seek(f.end, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(f.File, 64<<10)
	for {
		plain, size, err := f.frame(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return f.Truncate(f.end) // whoever wrote it has died
		}
		if err != nil {
			return err
		}
		f.end += size
		f.frames++
		for d := json.NewDecoder(plain); d.More(); {
			var e Entry
			if err := d.Decode(&e); err != nil {
				return err
			}
			if err := take(&e); err != nil {
				return err
			}
		}
	}
}

// frame reads one frame: its plain text, and its size in the file.
func (f *file) frame(in io.Reader) (io.Reader, int64, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, 0, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length < uint32(f.seal.NonceSize()) || length > maxFrame {
		return nil, 0, errors.New("a frame has no length that could be")
	}
	body, err := io.ReadAll(io.LimitReader(in, int64(length)))
	if err != nil {
		return nil, 0, err
	}
	if len(body) < int(length) {
		return nil, 0, io.ErrUnexpectedEOF
	}
	n := f.seal.NonceSize()
	plain, err := f.seal.Open(nil, body[:n], body[n:], f.place())
	if err != nil {
		return nil, 0, errors.New("a frame was changed, moved or taken away")
	}
	return bytes.NewReader(plain), int64(4 + length), nil
}

// place is what a frame is bound to.
func (f *file) place() []byte {
	return binary.BigEndian.AppendUint64([]byte(f.id), f.frames)
}

// append writes entries as one frame, durably.
func (f *file) append(entries []*Entry) error {
	if len(entries) > maxEntries {
		for part := range slices.Chunk(entries, maxEntries) {
			if err := f.append(part); err != nil {
				return err
			}
		}
		return nil
	}
	var plain []byte
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		plain = append(append(plain, line...), '\n')
	}
	nonce := random(f.seal.NonceSize())
	out := make([]byte, 4, 4+len(nonce)+len(plain)+f.seal.Overhead())
	out = f.seal.Seal(append(out, nonce...), nonce, plain, f.place())
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	_, err := f.WriteAt(out, f.end)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Truncate(f.end)) // half a frame would hide those after it
	}
	f.end += int64(len(out))
	f.frames++
	return nil
}
