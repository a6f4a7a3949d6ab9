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
	// ringFile is what is in the memory that a kept machine shares with the engine. What its
	// copies share is in files of that name with more behind it, each of which is locked until
	// the copy has opened it.
	ringFile   = "ring"
	ringPrefix = ringFile + "-"
	// gap is where the memory of a machine goes on elsewhere.
	gap = 3 << 30
	// unlocked is how long such a file may be there before it is.
	unlocked = time.Second
)

// share has the machine of an image share memory with the engine, if it can.
func (b *backend) share(i *image) {
	p := &i.config.Plan
	if b.driver.shares() && i.memory+shm.Size <= gap && p.Network == confine.NoNetwork && confine.Shares(i.runtime) {
		p.Ring, p.RingAt, p.Keep = true, i.memory, 1
	}
}

// shared makes the memory of a machine whose image is in dir: that of a copy, if the image is whole.
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

// left are the files of memory in the folders of machines that nobody shares any more.
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

// joined is the wire, over what comes from the machine and what it shares.
func (p *ports) joined(stream io.ReadWriter) io.ReadWriter {
	if p.shared == nil {
		return stream
	}
	return shm.NewHost(stream, p.shared, shm.Emulated)
}
