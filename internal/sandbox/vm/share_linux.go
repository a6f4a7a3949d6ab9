package vm

import (
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"retort/internal/base/seal"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/wire/shm"
)

const (
	// ringFile holds the saved content of the memory that a machine shares with the engine. The shared memory of a
	// copy is in a file whose name begins with ringPrefix. It is locked until the copy has opened it.
	ringFile   = "ring"
	ringPrefix = ringFile + "-"
	// memoryGap gives the address at which the memory of a machine is interrupted; the rest of it is mapped elsewhere.
	memoryGap = 3 << 30
	// unlockedGrace sets the time in which such a file is locked after its creation.
	unlockedGrace = time.Second
)

// shareMemory lets the machine of an image share memory with the engine if possible.
func (b *vmBackend) shareMemory(i *machineImage) {
	p := &i.config.Plan
	if b.driver.supportsSharedMemory() && i.memory+shm.Size <= memoryGap && p.Network == confine.NoNetwork && confine.SharesMemory(i.runtime) {
		p.Ring, p.RingAt, p.Keep = true, i.memory, 1
	}
}

// makeSharedMemory creates the shared memory of a machine whose image is in dir. If the image is complete, the memory is that
// of a copy.
func (i *machineImage) makeSharedMemory(dir string) (*shm.SharedMemory, error) {
	if !i.config.Plan.Ring {
		return nil, nil
	}
	path := filepath.Join(dir, ringPrefix+strings.ToLower(rand.Text()[:8]))
	content, err := os.ReadFile(filepath.Join(dir, ringFile))
	var memory *shm.SharedMemory
	switch {
	case os.IsNotExist(err):
		memory, err = shm.CreateMemory(path)
	case err == nil:
		memory, err = shm.CopyMemory(path, content)
	}
	if err == nil {
		err = seal.LockFile(memory.File(), seal.Unbounded)
	}
	return memory, err
}

// orphanedFiles returns the shared memory files in the folders of machines that are no longer in use.
func (b *vmBackend) orphanedFiles() (files []string) {
	all, _ := filepath.Glob(filepath.Join(b.Dir, prefix+"*", ringPrefix+"*"))
	for _, name := range all {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && time.Since(info.ModTime()) > unlockedGrace && procgroup.IsAbandoned(f) {
			files = append(files, name)
		}
		_ = f.Close()
	}
	return files
}

// joinWire returns the wire that combines the machine's stream with its shared memory.
func (p *machinePorts) joinWire(stream io.ReadWriter) io.ReadWriter {
	if p.shared == nil {
		return stream
	}
	return shm.NewHost(stream, p.shared, shm.EmulatedCallTime)
}
