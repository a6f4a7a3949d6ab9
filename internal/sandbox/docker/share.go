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

// ringPrefix begins the names of the shared memory files, which contain ring buffers. Through such a file a container
// and its engine share memory. The file is created before the container starts and removed once the guest has opened
// it.
const ringPrefix = "ring-"

// supportsSharedMemory reports whether the guest of an image can share memory with the engine.
func (m *guestImage) supportsSharedMemory() bool {
	return m.network == nil && m.command == nil && confine.SharesMemory(m.runtime)
}

// shareMemory creates the memory that a container shares with the engine. It returns nil if sharing is impossible.
// The program's calls are then slower.
func (b *dockerBackend) shareMemory(d *dockerDaemon, m *guestImage) *shm.SharedMemory {
	if !m.supportsSharedMemory() || b.far.Load() || !d.api.address.isLocal() || b.life.lockFile() != nil {
		return nil
	}
	memory, err := shm.CreateMemory(b.life.ringPath(strings.ToLower(rand.Text()[:8])))
	if err != nil {
		return nil // launch reports what is wrong, if anything is
	}
	return memory
}

// ringPath returns the path of a new shared memory file for a container of this engine.
func (l *lifeFile) ringPath(name string) string {
	return filepath.Join(l.dir, ringPrefix+l.id+"-"+name)
}

// ringFiles returns the shared memory files of the engine whose lock file is given.
func ringFiles(file string) []string {
	dir, name := filepath.Split(file)
	found, _ := filepath.Glob(filepath.Join(dir, ringPrefix+strings.TrimPrefix(name, lockPrefix)+"-*"))
	return found
}

// isRemoteError reports whether err shows that the daemon cannot mount this machine's files. If so, the backend no
// longer asks the daemon to mount shared memory files.
func (b *dockerBackend) isRemoteError(err error) bool {
	var said *apiFailure
	if !errors.As(err, &said) || said.status != http.StatusBadRequest && !strings.Contains(said.message, "mount") {
		return false
	}
	b.far.Store(true)
	return true
}

// connectGuest connects the engine to the guest. The connection uses shared memory, unless shared is nil.
func (c *guestContainer) connectGuest(shared *shm.SharedMemory) {
	var stream io.ReadWriter = struct {
		io.Reader
		io.Writer
	}{c.out, c.conn}
	if shared != nil {
		stream = shm.NewHost(stream, shared, 0)
		go func() {
			<-c.gone
			shared.RemoveName()
		}()
	}
	c.wire, c.shared = stream, shared
}
