package vm

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// packedKernel returns a kernel file that contains the argument payload, the compressed kernel. The argument plain is
// the size of the decompressed kernel in bytes.
func packedKernel(payload []byte, plain int) []byte {
	const setup = 1
	data := make([]byte, (setup+1)*512)
	data[setupSectors] = setup
	copy(data[bootMagic:], "HdrS")
	binary.LittleEndian.PutUint16(data[bootVersion:], withPayload)
	binary.LittleEndian.PutUint32(data[payloadOffset+4:], uint32(len(payload)+4))
	return binary.LittleEndian.AppendUint32(append(data, payload...), uint32(plain))
}

// TestReadVmlinux checks that readVmlinux unpacks kernels in the forms that distributions use, and rejects damaged
// ones.
func TestReadVmlinux(t *testing.T) {
	plain := append([]byte("\x7fELF"), bytes.Repeat([]byte("kernel "), 100)...)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(plain)
	_ = w.Close()
	// "\x7fELF" and "kernel ", as literals, a copy of 693 bytes, seven back, and nothing more.
	block := append([]byte{0xbf}, plain[:11]...)
	block = append(block, 7, 0, 255, 255, 693-4-15-255-255, 0)
	blocks := binary.LittleEndian.AppendUint32([]byte("\x02\x21\x4c\x18"), uint32(len(block)))
	blocks = append(blocks, block...)
	far := bytes.Clone(blocks)
	far[4+4+1+11] = 200
	for name, c := range map[string]struct {
		file []byte
		bad  bool
	}{
		"not packed":             {file: plain},
		"packed by nothing":      {file: packedKernel(plain, len(plain))},
		"gzip":                   {file: packedKernel(zipped.Bytes(), len(plain))},
		"LZ4":                    {file: packedKernel(blocks, len(plain))},
		"LZ4 from before it":     {file: packedKernel(far, len(plain)), bad: true},
		"LZ4 that is cut off":    {file: packedKernel(blocks[:len(blocks)-3], len(plain)), bad: true},
		"less than it says":      {file: packedKernel(blocks, len(plain)+1), bad: true},
		"more than it says":      {file: packedKernel(zipped.Bytes(), len(plain)-1), bad: true},
		"more than there can be": {file: packedKernel(blocks, maxVmlinux+1), bad: true},
		"of another kind":        {file: packedKernel([]byte("what is this"), 12), bad: true},
		"cut off":                {file: packedKernel(blocks, len(plain))[:700], bad: true},
		"no kernel":              {file: []byte("#!/bin/sh"), bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "vmlinuz")
			if err := os.WriteFile(file, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readVmlinux(file)
			if (err != nil) != c.bad || err == nil && !bytes.Equal(got, plain) {
				t.Errorf("%v: %d bytes", err, len(got))
			}
		})
	}
}
