package search

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"

	"retort/internal/base/seal"
)

const (
	maxVectorBytes = 256 << 20 // of the file
	maxGarbage     = 4 << 20   // bytes of unneeded vectors before the file is rewritten
)

// The format of a file of vectors. It consists of records, each appended with one write, little endian:
//
//	"RTV1" · dimensions uint32 · key [32]byte · CRC-32 uint32 of dimensions, key and numbers · numbers float32
//
// Incomplete records are skipped, so that a crash, or two processes that write at the same time, can damage only the
// records being written.
const (
	recordMagic = "RTV1"
	recordHead  = 4 + 4 + sha256.Size + 4
)

// vectorKey is the key under which a tool's vector is stored: a hash of the tool's server and definition.
type vectorKey [sha256.Size]byte

func keyOf(server, pin string) vectorKey { return sha256.Sum256([]byte(server + "\x00" + pin)) }

// vectorStore stores the vectors of one model in memory and on disk. All vectors have length 1.
type vectorStore struct {
	path string // empty: memory only

	mu    sync.RWMutex
	known map[vectorKey][]float32
	dims  int // of all; 0 before the first
	file  *os.File
	size  int64
}

// openVectors reads the stored vectors of a model in dir.
func openVectors(dir, model string) (*vectorStore, error) {
	v := &vectorStore{known: map[vectorKey][]float32{}}
	if dir == "" {
		return v, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	name := sha256.Sum256([]byte(model))
	v.path = filepath.Join(dir, "vectors-"+hex.EncodeToString(name[:8])+".bin")
	return v, v.openFile()
}

func (v *vectorStore) openFile() error {
	if info, err := os.Stat(v.path); err == nil && info.Mode().IsRegular() && info.Size() > maxVectorBytes {
		if err := os.Remove(v.path); err != nil { // no version of ours wrote it
			return err
		}
	}
	data, err := seal.ReadFile(v.path, maxVectorBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	readRecords(data, func(key vectorKey, numbers []float32) {
		if v.dims == 0 {
			v.dims = len(numbers)
		}
		if len(numbers) == v.dims {
			v.known[key] = numbers
		}
	})
	v.size = int64(len(data))
	v.file, err = seal.OpenFile(v.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return err
}

// readRecords calls yield for every complete record in data.
func readRecords(data []byte, yield func(vectorKey, []float32)) {
	for {
		at := bytes.Index(data, []byte(recordMagic))
		if at < 0 {
			return
		}
		data = data[at:]
		size, ok := readRecord(data, yield)
		if !ok {
			size = 1
		}
		data = data[size:]
	}
}

// readRecord reads the record at the start of data and returns its length.
func readRecord(data []byte, yield func(vectorKey, []float32)) (int, bool) {
	if len(data) < recordHead {
		return 0, false
	}
	dims := int(binary.LittleEndian.Uint32(data[4:]))
	if dims == 0 || dims > maxDimensions || len(data) < recordHead+4*dims {
		return 0, false
	}
	size := recordHead + 4*dims
	if recordChecksum(data[:size]) != binary.LittleEndian.Uint32(data[recordHead-4:]) {
		return 0, false
	}
	numbers := make([]float32, dims)
	for i := range numbers {
		numbers[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[recordHead+4*i:]))
	}
	yield(vectorKey(data[8:8+sha256.Size]), numbers)
	return size, true
}

func appendRecord(dst []byte, key vectorKey, numbers []float32) []byte {
	start := len(dst)
	dst = append(dst, recordMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(numbers)))
	dst = append(dst, key[:]...)
	dst = append(dst, 0, 0, 0, 0)
	for _, n := range numbers {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(n))
	}
	binary.LittleEndian.PutUint32(dst[start+recordHead-4:], recordChecksum(dst[start:]))
	return dst
}

func recordChecksum(record []byte) uint32 {
	sum := crc32.ChecksumIEEE(record[4 : recordHead-4])
	return crc32.Update(sum, crc32.IEEETable, record[recordHead:])
}

// getVector returns the vector of a tool, or nil.
func (v *vectorStore) getVector(key vectorKey) []float32 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.known[key]
}

func (v *vectorStore) vectorLength() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.dims
}

// vectorCapacity returns how many vectors fit into a file of the maximum size.
func (v *vectorStore) vectorCapacity() int {
	if dims := v.vectorLength(); dims > 0 {
		return maxVectorBytes / (recordHead + 4*dims)
	}
	return math.MaxInt
}

// putVectors stores vectors, which must have length 1. It returns an error if their number of dimensions differs from
// that of the vectors already stored. Errors while writing to disk are ignored.
func (v *vectorStore) putVectors(keys []vectorKey, numbers [][]float32) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var records []byte
	for i, key := range keys {
		if v.dims != 0 && len(numbers[i]) != v.dims {
			return v.otherDimensions(len(numbers[i]))
		}
		v.dims = len(numbers[i])
		v.known[key] = numbers[i]
		records = appendRecord(records, key, numbers[i])
	}
	if v.file != nil && v.size+int64(len(records)) <= maxVectorBytes {
		n, _ := v.file.Write(records)
		v.size += int64(n)
	}
	return nil
}

// otherDimensions returns the error for a vector whose number of dimensions differs from that of the vectors already
// stored.
func (v *vectorStore) otherDimensions(got int) error {
	hint := ""
	if v.path != "" {
		hint = "; if the model has changed, remove " + v.path
	}
	return fmt.Errorf("it returned a vector of %d numbers, but the stored ones have %d%s", got, v.dims, hint)
}

// retainWanted removes the vectors whose keys are not in wanted, if these vectors take up enough space to justify
// rewriting the file.
func (v *vectorStore) retainWanted(wanted map[vectorKey]bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	useful := int64(0)
	for key := range wanted {
		if v.known[key] != nil {
			useful += int64(recordHead + 4*v.dims)
		}
	}
	if v.size-useful < max(maxGarbage, useful) {
		return nil
	}
	for key := range v.known {
		if !wanted[key] {
			delete(v.known, key)
		}
	}
	return v.rewriteFile()
}

// rewriteFile replaces the store's file by a new file that contains only the vectors in memory.
func (v *vectorStore) rewriteFile() error {
	if v.file == nil {
		return nil
	}
	old, size := v.file, int64(0)
	v.file = nil
	err := seal.ReplaceWith(v.path, seal.ReplaceOptions{Check: old.Close}, func(w io.Writer) (err error) {
		for key, numbers := range v.known {
			n, failed := w.Write(appendRecord(nil, key, numbers))
			size += int64(n)
			err = errors.Join(err, failed)
		}
		return err
	})
	if err != nil {
		_ = old.Close() // it may be closed already
		return err
	}
	v.size = size
	v.file, err = seal.OpenFile(v.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return err
}

func (v *vectorStore) closeFile() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.file == nil {
		return nil
	}
	err := v.file.Close()
	v.file = nil
	return err
}

// normalizeVector scales a vector to length 1. The zero vector is an error.
func normalizeVector(numbers []float32) error {
	sum := 0.0
	for _, n := range numbers {
		sum += float64(n) * float64(n)
	}
	length := math.Sqrt(sum)
	if !(length > 0) || math.IsInf(length, 0) {
		return fmt.Errorf("it returned a zero vector")
	}
	for i := range numbers {
		numbers[i] = float32(float64(numbers[i]) / length)
	}
	return nil
}

// cosineSimilarity returns the similarity of two vectors of length 1.
func cosineSimilarity(a, b []float32) float32 {
	var sum float32
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
