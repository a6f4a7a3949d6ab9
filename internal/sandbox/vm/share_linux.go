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
	// ringFile is the name of a file in the folder of a saved machine. It holds the content that the memory shared by
	// machine and engine had when the machine was saved. Each running copy of the machine has its own file for its
	// shared memory, with a name that begins with ringPrefix. The file of a copy is locked until the copy has opened
	// it.
	ringFile   = "ring"
	ringPrefix = ringFile + "-"
	// memoryGap is the address at which the memory of a machine has a gap. If a machine has more bytes of memory than
	// that, the rest is mapped above the gap.
	memoryGap = 3 << 30
	// unlockedGrace is how long after its creation a file of shared memory may be unlocked without counting as
	// orphaned. In this time the engine that has created the file may not have locked it yet.
	unlockedGrace = time.Second
)

// shareMemory configures the machine of an image to share memory with the engine, if the driver supports it.
func (b *vmBackend) shareMemory(i *machineImage) {
	p := &i.config.Plan
	if b.driver.supportsSharedMemory() && i.memory+shm.Size <= memoryGap && p.Network == confine.NoNetwork && confine.SharesMemory(i.runtime) {
		p.Ring, p.RingAt, p.Keep = true, i.memory, 1
	}
}

// makeSharedMemory creates the memory that a machine in dir shares with the engine. If dir holds a saved machine, the
// memory starts with the saved content. It returns nil if the machine shares no memory.
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
		err = seal.LockFile(memory.OpenedFile(), seal.Unbounded)
	}
	return memory, err
}

// orphanedFiles returns the shared memory files that no running machine uses.
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

// joinWire returns a connection that combines the machine's stream with its shared memory.
func (p *machinePorts) joinWire(stream io.ReadWriter) io.ReadWriter {
	if p.shared == nil {
		return stream
	}
	return shm.NewHost(stream, p.shared, shm.EmulatedCallTime)
}
