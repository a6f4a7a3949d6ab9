package gvisor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"retort/internal/base/seal"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/warmpool"
)

// engineFolder manages the folder of one engine, which contains:
//
//	lock            a file that is locked as long as the engine lives
//	root-RUNTIME/   the root file systems
//	N/              the files of a container: config.json, state/, pid
//
// If an engine can lock the file of another engine, the other engine is dead, and its folder is removed.
type engineFolder struct {
	dir string // folder of all engines; empty means a folder in the system's directory for temporary files

	mu   sync.Mutex
	own  string // folder of this engine; empty until it is first needed
	lock *os.File
	next int

	closed bool
}

const (
	lockFile = "lock"
	pidFile  = "pid"
	prefix   = "gv-"
	// maxFolderPath bounds the length of the path of an engine's folder, in bytes. gVisor creates a socket below it,
	// and the kernel limits the path of a socket to 107 bytes.
	maxFolderPath = 60
)

// openFolder creates the folder on first use. The caller must hold p.mu.
func (p *engineFolder) openFolder() error {
	switch {
	case p.closed:
		return warmpool.ErrClosed
	case p.own != "":
		return nil
	}
	parent := p.dir
	if parent == "" || len(parent) > maxFolderPath {
		parent = filepath.Join(os.TempDir(), "retort-gvisor-"+strconv.Itoa(os.Geteuid()))
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	if err := checkOwned(parent); err != nil {
		return err
	}
	sweepDeadEngines(parent)
	// It gets its final name only after it is locked.
	made, err := os.MkdirTemp(parent, "new-")
	if err != nil {
		return err
	}
	p.lock, err = os.OpenFile(filepath.Join(made, lockFile), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	if err == nil {
		err = seal.LockFile(p.lock, 0)
	}
	own := filepath.Join(parent, prefix+strings.TrimPrefix(filepath.Base(made), "new-"))
	if err == nil {
		err = os.Rename(made, own)
	}
	if err != nil {
		_ = p.lock.Close()
		return errors.Join(err, os.RemoveAll(made))
	}
	p.own = own
	return nil
}

// checkOwned returns an error if the folder does not belong to this user or other users can write to it.
func checkOwned(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return &os.PathError{Op: "use", Path: dir, Err: errors.New("other users could write to this folder")}
	}
	return nil
}

// makeContainerDir creates a folder for a container.
func (p *engineFolder) makeContainerDir() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.openFolder(); err != nil {
		return "", err
	}
	p.next++
	dir := filepath.Join(p.own, strconv.Itoa(p.next))
	return dir, os.Mkdir(dir, 0o700)
}

// makeRootDir creates a folder for the root file system of a runtime.
func (p *engineFolder) makeRootDir(runtime string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.openFolder(); err != nil {
		return "", err
	}
	dir := filepath.Join(p.own, "root-"+runtime)
	return dir, os.Mkdir(dir, 0o755)
}

// closeFolder makes all later calls of makeContainerDir and makeRootDir fail, so that no new folders are created.
func (p *engineFolder) closeFolder() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// removeFolder removes the folder. All containers must have ended.
func (p *engineFolder) removeFolder() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own == "" {
		return nil
	}
	err := os.RemoveAll(p.own)
	p.own = ""
	return errors.Join(err, p.lock.Close())
}

// sweepDeadEngines removes the folders of dead engines. Containers normally end together with their engine.
// sweepDeadEngines kills containers that did not.
func sweepDeadEngines(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
	for _, dir := range left {
		lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		switch {
		case os.IsNotExist(err) && isOld(dir) && len(processesOf(dir)) == 0: // the process that removed it died after the lock was gone
			_ = os.RemoveAll(dir)
		case err == nil && procgroup.IsAbandoned(lock):
			endAll(dir)
		}
		_ = lock.Close()
	}
	// An engine that died while it made its folder has started nothing.
	made, _ := filepath.Glob(filepath.Join(parent, "new-*"))
	for _, dir := range made {
		if isOld(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}

// isOld reports whether no entry of a folder was created or removed in the last minute.
func isOld(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && time.Since(info.ModTime()) > time.Minute
}

// endAll kills the processes of containers below dir, waits for them, and removes dir. It tries several times for a
// bounded time, because a container that is just starting may not be visible yet and may still create files.
func endAll(dir string) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		pids := processesOf(dir)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(pids) == 0 && os.RemoveAll(dir) == nil {
			return
		}
	}
}

// processesOf returns the ids of the gVisor processes whose command lines name containers below dir. A program cannot
// change these command lines, because it runs in none of these processes.
func processesOf(dir string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && ofContainer(line, dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ofContainer reports whether line is the command line of a gVisor process of a container below dir.
func ofContainer(line []byte, dir string) bool {
	name, _, _ := bytes.Cut(line, []byte{0})
	return strings.HasPrefix(filepath.Base(string(name)), "runsc") && bytes.Contains(line, []byte("\x00--root="+dir+"/"))
}
