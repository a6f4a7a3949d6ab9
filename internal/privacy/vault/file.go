package vault

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"retort/internal/base/seal"
)

// sessionFile is the data file of a session: a format mark, then frames, each with several entries. A frame consists
// of a u32 with the length of the rest, a nonce (12 bytes) and the AES-256-GCM ciphertext of an entryFrame. Its
// additional data holds the session's ID and the frame's number, so that no frame can be left out, moved, or copied
// from another session. An incomplete frame at the end of the file is ignored, because none of its tokens was given
// out.
type sessionFile struct {
	*os.File
	id     string
	seal   cipher.AEAD
	frames uint32 // number of frames read or written
	end    int64  // offset of the end of these frames
}

// frameSpan says where a frame is in a file.
type frameSpan struct {
	at           int64
	size, number uint32
}

// fileMark is the beginning of every data file. A file of format version 1 begins with a frame length instead, which is
// always smaller.
const fileMark = "retort\x00\x02"

const (
	keySize    = 32
	nameSize   = 8 // random bytes of a data file's name, stored in its key file
	maxFrame   = 256 << 20
	batchBytes = 1 << 20 // bytes that are written at once
)

// derivedAEAD returns an AES-256-GCM cipher whose key is derived from another key. use names the purpose of the
// cipher, because each purpose has its own derived key.
func derivedAEAD(key []byte, use string) (cipher.AEAD, error) {
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

// wrapCipher returns the cipher that encrypts the keys of sessions.
func (s *TokenVault) wrapCipher() (cipher.AEAD, error) {
	master, err := s.master()
	if err != nil {
		return nil, err
	}
	if len(master) != keySize {
		return nil, fmt.Errorf("the key has %d bytes and needs %d", len(master), keySize)
	}
	return derivedAEAD(master, "keys")
}

// createFile replaces the session's file by a new one with a new key. The function source supplies the entries of the
// new file. If createFile fails, the old file stays in use. If it succeeds, the old file can no longer be read,
// because the new key has overwritten the old one. The caller must still read the new file to load its frames.
func (s *TokenSession) createFile(source func(put func(*TokenEntry) error) error) (*sessionFile, []byte, error) {
	wrap, err := s.store.wrapCipher()
	if err != nil {
		return nil, nil, err
	}
	secret, nonce := randomBytes(keySize+nameSize), randomBytes(wrap.NonceSize())
	wrapped := wrap.Seal(nonce, nonce, secret, []byte(s.id))
	path := s.store.dataPath(s.id, secret)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, err
	}
	data, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, err
	}
	f, err := s.newSealedFile(data, secret)
	if err == nil {
		err = f.writeEntries(source)
	}
	if err == nil {
		err = seal.ReplaceFile(s.store.keyPath(s.id), wrapped)
	}
	if err != nil {
		return nil, nil, errors.Join(err, data.Close(), os.Remove(path))
	}
	s.store.removeOrphans(s.id, path)
	f.frames, f.end = 0, int64(len(fileMark))
	return f, wrapped, nil
}

// writeEntries writes the format mark to a new file, then all entries that the function source supplies. Finally it
// syncs the file to disk.
func (f *sessionFile) writeEntries(source func(put func(*TokenEntry) error) error) error {
	if _, err := f.WriteAt([]byte(fileMark), 0); err != nil {
		return err
	}
	var frames []*entryFrame
	size := 0
	write := func() error {
		_, err := f.writeFrames(frames)
		frames, size = nil, 0
		return err
	}
	err := source(func(e *TokenEntry) error {
		if len(frames) == 0 || frames[len(frames)-1].isFull() {
			if size > batchBytes {
				if err := write(); err != nil {
					return err
				}
			}
			frames = append(frames, &entryFrame{names: &frameNames{}})
		}
		frames[len(frames)-1].appendEntry(e, false)
		size += len(e.Value) + 8
		return nil
	})
	if err == nil {
		err = write()
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

func (s *TokenSession) newSealedFile(f *os.File, secret []byte) (*sessionFile, error) {
	cipher, err := derivedAEAD(secret[:keySize], "session 2 "+s.id)
	if err != nil {
		return nil, err
	}
	return &sessionFile{File: f, id: s.id, seal: cipher, end: int64(len(fileMark))}, nil
}

// openFile decrypts the session's key and opens the data file that is encrypted with this key. A file of format
// version 1 is converted to the current format, with a new key.
func (s *TokenSession) openFile(wrapped []byte) (*sessionFile, []byte, error) {
	wrap, err := s.store.wrapCipher()
	if err != nil {
		return nil, nil, err
	}
	if len(wrapped) < wrap.NonceSize() {
		return nil, nil, errors.New("its key is damaged")
	}
	secret, err := wrap.Open(nil, wrapped[:wrap.NonceSize()], wrapped[wrap.NonceSize():], []byte(s.id))
	if err != nil || len(secret) != keySize+nameSize {
		return nil, nil, errors.New("its key was encrypted with another master key, or is damaged")
	}
	data, err := seal.OpenFile(s.store.dataPath(s.id, secret), os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	var head [len(fileMark)]byte
	if _, err := data.ReadAt(head[:], 0); err != nil {
		return nil, nil, errors.Join(errors.New("its file is truncated"), err, data.Close())
	}
	if string(head[:]) != fileMark {
		defer data.Close()
		return s.upgradeV1(data, secret)
	}
	f, err := s.newSealedFile(data, secret)
	if err != nil {
		return nil, nil, errors.Join(err, data.Close())
	}
	return f, wrapped, nil
}

// readFrames calls take for each frame that this or another process added to the file since it was last read or
// written.
func (f *sessionFile) readFrames(take func(*entryFrame, frameSpan) error) error {
	info, err := f.Stat()
	if err != nil || info.Size() == f.end {
		return err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f.File, f.end, info.Size()-f.end), 64<<10)
	var sharing nameSharing
	for {
		plain, size, err := f.nextFrame(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return f.Truncate(f.end) // its writer died before it was complete
		}
		if err != nil {
			return err
		}
		frame, err := decodeFrame(plain, &sharing)
		if err != nil {
			return err
		}
		if err := take(frame, frameSpan{f.end, size, f.frames}); err != nil {
			return err
		}
		f.end += 4 + int64(size)
		f.frames++
	}
}

// nextFrame reads and decrypts one frame. It returns the plaintext, and the frame's size in the file without the
// length prefix.
func (f *sessionFile) nextFrame(in io.Reader) ([]byte, uint32, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, 0, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length < uint32(f.seal.NonceSize()) || length > maxFrame {
		return nil, 0, errors.New("a frame has an invalid length")
	}
	body, err := readN(in, length)
	if err != nil {
		return nil, 0, err
	}
	plain, err := f.decryptFrame(body, f.frames)
	return plain, length, err
}

// readN reads n bytes. It allocates memory only for bytes that exist, so that a wrong length in a damaged file cannot
// exhaust the memory.
func readN(in io.Reader, n uint32) ([]byte, error) {
	if n > batchBytes {
		body, err := io.ReadAll(io.LimitReader(in, int64(n)))
		if err == nil && len(body) < int(n) {
			err = io.ErrUnexpectedEOF
		}
		return body, err
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(in, body); errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	} else if err != nil {
		return nil, err
	}
	return body, nil
}

// decryptFrame decrypts a frame in place. It returns an error if the frame was modified, moved or replaced.
func (f *sessionFile) decryptFrame(body []byte, number uint32) ([]byte, error) {
	n := f.seal.NonceSize()
	plain, err := f.seal.Open(body[n:n], body[:n], body[n:], f.frameBinding(number))
	if err != nil {
		return nil, errors.New("a frame was modified, moved or removed")
	}
	return plain, nil
}

// readFrameAt returns the plaintext of a frame that was read or written before.
func (f *sessionFile) readFrameAt(s frameSpan) ([]byte, error) {
	body := make([]byte, s.size)
	if _, err := f.ReadAt(body, s.at+4); err != nil {
		return nil, err
	}
	return f.decryptFrame(body, s.number)
}

// frameBinding returns a frame's additional data, which binds the frame to its session and number.
func (f *sessionFile) frameBinding(number uint32) []byte {
	return binary.BigEndian.AppendUint64([]byte(f.id), uint64(number))
}

// appendFrames appends frames to the file and syncs it to disk. It writes either all frames or none, and returns
// their positions.
func (f *sessionFile) appendFrames(frames []*entryFrame) ([]frameSpan, error) {
	before, end := f.frames, f.end
	written, err := f.writeFrames(frames)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.frames, f.end = before, end
		return nil, errors.Join(err, f.Truncate(end)) // a partial frame would hide those after it
	}
	return written, nil
}

func (f *sessionFile) writeFrames(frames []*entryFrame) (written []frameSpan, err error) {
	var out, plain []byte
	end, number := f.end, f.frames
	for _, frame := range frames {
		plain = append(frame.names.appendTo(plain[:0]), frame.body...)
		nonce := randomBytes(f.seal.NonceSize())
		start := len(out)
		out = f.seal.Seal(append(append(out, 0, 0, 0, 0), nonce...), nonce, plain, f.frameBinding(number))
		size := uint32(len(out) - start - 4)
		binary.BigEndian.PutUint32(out[start:], size)
		written = append(written, frameSpan{end, size, number})
		end += int64(size) + 4
		number++
	}
	if _, err := f.WriteAt(out, f.end); err != nil {
		return nil, err
	}
	f.end, f.frames = end, number
	return written, nil
}
