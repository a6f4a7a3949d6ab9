package docker

import (
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/wire/shm"
)

// ringPrefix begins the names of files that containers share with their engine. Such a file exists from before its
// container starts until the guest has opened it.
const ringPrefix = "ring-"

// shares reports whether the guest of an image can use memory shared with the engine.
func (m *image) shares() bool {
	return m.network == nil && m.command == nil && confine.Shares(m.runtime)
}

// share creates the shared memory of a container. It returns nil if the container must do without, which makes calls
// slower.
func (b *backend) share(d *daemon, m *image) *shm.Memory {
	if !m.shares() || b.far.Load() || !d.api.address.local() || b.life.begin() != nil {
		return nil
	}
	memory, err := shm.Create(b.life.ring(strings.ToLower(rand.Text()[:8])))
	if err != nil {
		return nil // launch reports what is wrong, if anything is
	}
	return memory
}

// ring returns the path of a file that a container of this engine shares.
func (l *life) ring(name string) string {
	return filepath.Join(l.dir, ringPrefix+l.id+"-"+name)
}

// rings returns the files that were shared with containers of the engine whose lock is file.
func rings(file string) []string {
	dir, name := filepath.Split(file)
	found, _ := filepath.Glob(filepath.Join(dir, ringPrefix+strings.TrimPrefix(name, lockPrefix)+"-*"))
	return found
}

// distant reports whether err means that the daemon does not see this machine's files. If so, it is never asked to
// mount one again.
func (b *backend) distant(err error) bool {
	var said *failure
	if !errors.As(err, &said) || said.status != http.StatusBadRequest && !strings.Contains(said.message, "mount") {
		return false
	}
	b.far.Store(true)
	return true
}

// connect connects the engine with the guest, through shared memory unless shared is nil.
func (c *container) connect(shared *shm.Memory) {
	var stream io.ReadWriter = struct {
		io.Reader
		io.Writer
	}{c.out, c.conn}
	if shared != nil {
		stream = shm.NewHost(stream, shared, 0)
		go func() {
			<-c.gone
			shared.Hide()
		}()
	}
	c.wire, c.shared = stream, shared
}
