package vm

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/pierrec/lz4/v4"
)

// maxVmlinux bounds the size of an unpacked kernel, in bytes.
const maxVmlinux = 512 << 20

// Offsets of fields in the header of a kernel file ("bzImage"), and the version of the header that is needed. See the
// kernel's Documentation/x86/boot.rst.
const (
	setupSectors  = 0x1f1
	bootMagic     = 0x202
	bootVersion   = 0x206
	payloadOffset = 0x248
	headLength    = 0x250
	withPayload   = 0x208 // first version of the header that has the offset of the compressed kernel
)

var errPacked = errors.New("this kernel's file has an unknown format")

// readVmlinux reads a kernel file and returns the kernel as an uncompressed ELF file, which a monitor can boot.
// Distributions ship kernels in a compressed, self-extracting form.
func readVmlinux(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(data, []byte("\x7fELF")) {
		data, err = unpackKernel(data)
	}
	if err == nil && !bytes.HasPrefix(data, []byte("\x7fELF")) {
		err = errPacked
	}
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", file, err)
	}
	return data, nil
}

// unpackKernel returns the uncompressed kernel that a kernel file contains.
func unpackKernel(data []byte) ([]byte, error) {
	if len(data) < headLength || string(data[bootMagic:bootMagic+4]) != "HdrS" ||
		binary.LittleEndian.Uint16(data[bootVersion:]) < withPayload {
		return nil, errPacked
	}
	setup := int64(data[setupSectors])
	if setup == 0 {
		setup = 4
	}
	from := (setup+1)*512 + int64(binary.LittleEndian.Uint32(data[payloadOffset:]))
	to := from + int64(binary.LittleEndian.Uint32(data[payloadOffset+4:]))
	const size = 4 // behind the payload: what it has when it is unpacked
	if to > int64(len(data)) || to-from <= size {
		return nil, errPacked
	}
	full := int64(binary.LittleEndian.Uint32(data[to-size:]))
	if full > maxVmlinux {
		return nil, errPacked
	}
	return decompressKernel(data[from:to-size], full)
}

// decompressKernel decompresses data in any of the formats that kernels use. size is the size of the decompressed
// kernel in bytes.
func decompressKernel(data []byte, size int64) (plain []byte, err error) {
	switch {
	case bytes.HasPrefix(data, []byte("\x02\x21\x4c\x18")):
		plain, err = io.ReadAll(io.LimitReader(lz4.NewReader(bytes.NewReader(data)), size+1))
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		var r io.Reader
		if r, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			plain, err = io.ReadAll(io.LimitReader(r, size+1))
		}
	case bytes.HasPrefix(data, []byte("\xfd7zXZ")):
		plain, err = filterThrough(data, decompressors[".xz"])
	case bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd")):
		plain, err = filterThrough(data, decompressors[".zst"])
	case bytes.HasPrefix(data, []byte("\x7fELF")):
		plain = data
	default:
		return nil, errPacked
	}
	if err == nil && int64(len(plain)) != size {
		err = fmt.Errorf("it has %d bytes, but should have %d", len(plain), size)
	}
	return plain, err
}

// filterThrough runs a program of the system, such as a decompressor, with data as its input. It returns the
// program's output.
func filterThrough(data []byte, program []string) ([]byte, error) {
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdin = bytes.NewReader(data)
	return cmd.Output()
}
