package vm

import (
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/wire/shm"
)

const (
	// ringFile holds the saved content of the memory that a machine shares with the engine. The shared memory of a
	// copy is in a file whose name begins with ringPrefix. It is locked until the copy has opened it.
	ringFile   = "ring"
	ringPrefix = ringFile + "-"
	// gap gives the address at which the memory of a machine is interrupted; the rest of it is mapped elsewhere.
	gap = 3 << 30
	// unlocked sets the time in which such a file is locked after its creation.
	unlocked = time.Second
)

// share lets the machine of an image share memory with the engine if possible.
func (b *backend) share(i *image) {
	p := &i.config.Plan
	if b.driver.shares() && i.memory+shm.Size <= gap && p.Network == confine.NoNetwork && confine.Shares(i.runtime) {
		p.Ring, p.RingAt, p.Keep = true, i.memory, 1
	}
}

// shared creates the shared memory of a machine whose image is in dir. If the image is complete, the memory is that
// of a copy.
func (i *image) shared(dir string) (*shm.Memory, error) {
	if !i.config.Plan.Ring {
		return nil, nil
	}
	path := filepath.Join(dir, ringPrefix+strings.ToLower(rand.Text()[:8]))
	content, err := os.ReadFile(filepath.Join(dir, ringFile))
	var memory *shm.Memory
	switch {
	case os.IsNotExist(err):
		memory, err = shm.Create(path)
	case err == nil:
		memory, err = shm.Copy(path, content)
	}
	if err == nil {
		err = unix.Flock(int(memory.File().Fd()), unix.LOCK_EX)
	}
	return memory, err
}

// left returns the shared memory files in the folders of machines that are no longer in use.
func (b *backend) left() (files []string) {
	all, _ := filepath.Glob(filepath.Join(b.Dir, prefix+"*", ringPrefix+"*"))
	for _, name := range all {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && time.Since(info.ModTime()) > unlocked && procgroup.Abandoned(f) {
			files = append(files, name)
		}
		_ = f.Close()
	}
	return files
}

// joined returns the wire that combines the machine's stream with its shared memory.
func (p *ports) joined(stream io.ReadWriter) io.ReadWriter {
	if p.shared == nil {
		return stream
	}
	return shm.NewHost(stream, p.shared, shm.Emulated)
}
