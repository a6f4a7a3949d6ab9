package docker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"retort/internal/sandbox/procgroup"
)

// Labels of containers.
const (
	label        = "retort"         // "guest"
	labelEngine  = "retort.engine"  // the engine that it belongs to
	labelLock    = "retort.lock"    // the file that this engine has locked
	labelMachine = "retort.machine" // the engine's machine
	labelProcess = "retort.process" // the engine's process on that machine
)

// life shows other engines that this one is alive, by a file that it keeps locked. The lock is released when the
// process ends, for whatever reason.
type life struct {
	id, dir string

	mu   sync.Mutex
	lock *os.File
}

const lockPrefix = "engine-"

func newLife(dir string) *life {
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "retort-docker-"+strconv.Itoa(os.Getuid()))
	}
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	return &life{id: strings.ToLower(rand.Text()[:16]), dir: dir}
}

func (l *life) file() string { return filepath.Join(l.dir, lockPrefix+l.id) }

// begin creates and locks the file. Other engines find dead engines by trying to lock files with such a name, so the
// file gets its name only after it is locked. begin is idempotent.
func (l *life) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock != nil {
		return nil
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	made := filepath.Join(l.dir, "new-"+l.id)
	f, err := os.OpenFile(made, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err = lockFile(f); err == nil {
		err = os.Rename(made, l.file())
	}
	if err != nil {
		_ = f.Close()
		return errors.Join(err, os.Remove(made))
	}
	l.lock = f
	return nil
}

// end unlocks the file and removes it.
func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock != nil {
		_ = os.Remove(l.file())
		_ = l.lock.Close()
		l.lock = nil
	}
}

// labels returns the labels of this engine's containers.
func (l *life) labels() map[string]string {
	machine, _ := os.Hostname()
	return map[string]string{label: "guest", labelEngine: l.id, labelLock: l.file(), labelMachine: machine, labelProcess: process(os.Getpid())}
}

// process returns a process id with the process's start time, if the machine reports that.
func process(pid int) string {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(data), ") ")
	if fields := strings.Fields(after); len(fields) > 19 {
		return strconv.Itoa(pid) + " " + fields[19]
	}
	return strconv.Itoa(pid)
}

// stale reports whether dir has files of dead engines.
func stale(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, lockPrefix+"*"))
	for _, f := range files {
		if dead(f) {
			return true
		}
	}
	return false
}

// dead reports whether a file is not locked. A file that cannot be opened counts as locked.
func dead(file string) bool {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return os.IsNotExist(err)
	}
	defer f.Close()
	return procgroup.Abandoned(f)
}

// orphan reports whether the engine of a container with these labels is dead. Engines on other machines are never
// reported, nor is one whose process exists, even if its file is not visible from here.
func orphan(labels map[string]string) bool {
	machine, _ := os.Hostname()
	file := labels[labelLock]
	if labels[labelMachine] != machine || !filepath.IsAbs(file) || !strings.HasPrefix(filepath.Base(file), lockPrefix) {
		return false
	}
	pid, started, _ := strings.Cut(labels[labelProcess], " ")
	if n, err := strconv.Atoi(pid); err == nil && started != "" && process(n) == labels[labelProcess] {
		return false
	}
	return dead(file)
}

// sweeping sets the interval at which containers of dead engines are looked for.
const sweeping = 10 * time.Minute

// again sets the delay of a second search after the first: an engine may have been killed while the daemon was making
// a container for it.
var again = []time.Duration{2 * time.Second, 8 * time.Second}

// sweep removes the containers that dead engines left behind, and then the files that showed that they are dead.
func (b *backend) sweep(a *api) {
	ctx, cancel := context.WithTimeout(context.Background(), importing)
	defer cancel()
	stop := context.AfterFunc(b.closing, cancel)
	defer stop()
	var dying []string
	files, _ := filepath.Glob(filepath.Join(b.life.dir, lockPrefix+"*"))
	for _, f := range files {
		if dead(f) {
			dying = append(dying, f)
		}
	}
	kept := reap(ctx, a)
	for i := 0; len(dying) > 0 && (i < len(again) || kept == nil || len(kept) > 0); i++ {
		select {
		case <-ctx.Done():
			return // the next engine continues
		case <-time.After(again[min(i, len(again)-1)]):
		}
		kept = reap(ctx, a)
	}
	for _, f := range dying {
		if !kept[f] && kept != nil && ctx.Err() == nil {
			for _, r := range rings(f) {
				_ = os.Remove(r)
			}
			_ = os.Remove(f)
		}
	}
}

// reap removes the containers of dead engines. It returns the files of engines with a container that could not be
// removed, or nil if the containers could not be listed.
func reap(ctx context.Context, a *api) (kept map[string]bool) {
	filters, _ := json.Marshal(map[string][]string{"label": {label}})
	var list []struct {
		ID     string `json:"Id"`
		Labels map[string]string
	}
	if a.call(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"1"}, "filters": {string(filters)}}, nil, &list) != nil {
		return nil
	}
	kept = map[string]bool{}
	for _, c := range list {
		if orphan(c.Labels) && remove(ctx, a, c.ID) != nil {
			kept[filepath.Clean(c.Labels[labelLock])] = true
		}
	}
	return kept
}

// removing sets the longest pause before another attempt to remove a container.
const removing = time.Second

// remove kills a container and removes it. If the daemon is still writing to the container's folder, the removal
// fails ("directory not empty") and is retried.
func remove(ctx context.Context, a *api, id string) error {
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		err := a.call(ctx, http.MethodDelete, "/containers/"+id, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
		if answered(err, http.StatusConflict) { // it is being removed
			err = a.call(ctx, http.MethodPost, "/containers/"+id+"/wait", url.Values{"condition": {"removed"}}, nil, nil)
		}
		// The thing that is not found may be a process of the container, which ends while it is killed.
		if answered(err, http.StatusNotFound) && answered(a.call(ctx, http.MethodGet, "/containers/"+id+"/json", nil, nil, nil), http.StatusNotFound) {
			return nil
		}
		if !answered(err, http.StatusInternalServerError, http.StatusNotFound) || pause > removing {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
