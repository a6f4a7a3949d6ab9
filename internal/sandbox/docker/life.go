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

	"retort/internal/base/seal"
	"retort/internal/sandbox/procgroup"
)

// label and the following constants are the labels of containers. They name the engine that started a container, so
// that another engine can recognize the containers of dead engines.
const (
	label        = "retort"         // marks a container with a guest; its value is "guest"
	labelEngine  = "retort.engine"  // identifies the engine that started the container
	labelLock    = "retort.lock"    // path of the lock file of that engine
	labelMachine = "retort.machine" // machine on which that engine runs
	labelProcess = "retort.process" // process id and start time of that engine
)

// lifeFile represents a lock file that shows other engines that this one is alive. The lock is released when the
// process ends, for whatever reason.
type lifeFile struct {
	id, dir string

	mu   sync.Mutex
	lock *os.File
}

const lockPrefix = "engine-"

func newLife(dir string) *lifeFile {
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "retort-docker-"+strconv.Itoa(os.Getuid()))
	}
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	return &lifeFile{id: strings.ToLower(rand.Text()[:16]), dir: dir}
}

func (l *lifeFile) filePath() string { return filepath.Join(l.dir, lockPrefix+l.id) }

// lockLife locks a file for the lifetime of this process. It returns an error on systems without such locks. There no
// engine is considered dead.
func lockLife(f *os.File) error {
	if !seal.Locks {
		return errors.ErrUnsupported
	}
	return seal.LockFile(f, 0)
}

// lockFile creates and locks the file. Other engines try to lock every file whose name looks like that of a lifeFile,
// to find dead engines. Therefore the file gets its name only after it is locked. lockFile is idempotent.
func (l *lifeFile) lockFile() error {
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
	if err = lockLife(f); err == nil {
		err = os.Rename(made, l.filePath())
	}
	if err != nil {
		_ = f.Close()
		return errors.Join(err, os.Remove(made))
	}
	l.lock = f
	return nil
}

// unlockFile unlocks the file and removes it.
func (l *lifeFile) unlockFile() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock != nil {
		_ = os.Remove(l.filePath())
		_ = l.lock.Close()
		l.lock = nil
	}
}

// containerLabels returns the labels of this engine's containers.
func (l *lifeFile) containerLabels() map[string]string {
	machine, _ := os.Hostname()
	return map[string]string{
		label: "guest", labelEngine: l.id, labelLock: l.filePath(), labelMachine: machine,
		labelProcess: processIdentity(os.Getpid()),
	}
}

// processIdentity returns a process id together with the process's start time, or "" if the system does not report
// it.
func processIdentity(pid int) string {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(data), ") ")
	if fields := strings.Fields(after); len(fields) > 19 {
		return strconv.Itoa(pid) + " " + fields[19]
	}
	return strconv.Itoa(pid)
}

// hasDeadEngines reports whether dir contains files of engines that have died.
func hasDeadEngines(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, lockPrefix+"*"))
	for _, f := range files {
		if isDeadEngine(f) {
			return true
		}
	}
	return false
}

// isDeadEngine reports whether an engine is dead: whether no process has locked the engine's lock file, or the file
// is missing. If the file cannot be opened for another reason, it returns false.
func isDeadEngine(file string) bool {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return os.IsNotExist(err)
	}
	defer f.Close()
	return procgroup.IsAbandoned(f)
}

// isOrphan reports whether the engine that started a container is dead, judging by the container's labels. It returns
// false for engines on other machines and for engines whose process exists, even if their lock file is not visible
// from here.
func isOrphan(labels map[string]string) bool {
	machine, _ := os.Hostname()
	file := labels[labelLock]
	if labels[labelMachine] != machine || !filepath.IsAbs(file) || !strings.HasPrefix(filepath.Base(file), lockPrefix) {
		return false
	}
	pid, started, _ := strings.Cut(labels[labelProcess], " ")
	if n, err := strconv.Atoi(pid); err == nil && started != "" && processIdentity(n) == labels[labelProcess] {
		return false
	}
	return isDeadEngine(file)
}

// sweepInterval is how often the backend looks for containers of dead engines.
const sweepInterval = 10 * time.Minute

// secondSweepDelay lists the pauses before the repeated searches for containers of dead engines. The last pause
// applies to all further searches. A repeated search finds containers that the daemon was still creating when their
// engine was killed.
var secondSweepDelay = []time.Duration{2 * time.Second, 8 * time.Second}

// sweepDeadEngines removes the containers that dead engines left behind, and then those engines' lock files.
func (b *dockerBackend) sweepDeadEngines(a *engineAPI) {
	ctx, cancel := context.WithTimeout(context.Background(), importTimeout)
	defer cancel()
	stop := context.AfterFunc(b.closing, cancel)
	defer stop()
	var dying []string
	files, _ := filepath.Glob(filepath.Join(b.life.dir, lockPrefix+"*"))
	for _, f := range files {
		if isDeadEngine(f) {
			dying = append(dying, f)
		}
	}
	kept := removeOrphans(ctx, a)
	for i := 0; len(dying) > 0 && (i < len(secondSweepDelay) || kept == nil || len(kept) > 0); i++ {
		select {
		case <-ctx.Done():
			return // the next engine continues
		case <-time.After(secondSweepDelay[min(i, len(secondSweepDelay)-1)]):
		}
		kept = removeOrphans(ctx, a)
	}
	for _, f := range dying {
		if !kept[f] && kept != nil && ctx.Err() == nil {
			for _, r := range ringFiles(f) {
				_ = os.Remove(r)
			}
			_ = os.Remove(f)
		}
	}
}

// removeOrphans removes the containers of dead engines. It returns, as kept, the lock files of those engines of which
// a container could not be removed. The result is nil if the containers could not be listed.
func removeOrphans(ctx context.Context, a *engineAPI) (kept map[string]bool) {
	filters, _ := json.Marshal(map[string][]string{"label": {label}})
	var list []struct {
		ID     string `json:"Id"`
		Labels map[string]string
	}
	if a.callJSON(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"1"}, "filters": {string(filters)}}, nil, &list) != nil {
		return nil
	}
	kept = map[string]bool{}
	for _, c := range list {
		if isOrphan(c.Labels) && removeContainer(ctx, a, c.ID) != nil {
			kept[filepath.Clean(c.Labels[labelLock])] = true
		}
	}
	return kept
}

// maxRemovePause bounds the pause between two attempts to remove a container.
const maxRemovePause = time.Second

// removeContainer kills and removes a container. It tries again if the removal fails, for example with "directory not
// empty" while the daemon is still writing to the container's folder.
func removeContainer(ctx context.Context, a *engineAPI, id string) error {
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		err := a.callJSON(ctx, http.MethodDelete, "/containers/"+id, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
		if isAnswered(err, http.StatusConflict) { // it is being removed
			err = a.callJSON(ctx, http.MethodPost, "/containers/"+id+"/wait", url.Values{"condition": {"removed"}}, nil, nil)
		}
		// The thing that is not found may be a process of the container, which ends while it is killed.
		if isAnswered(err, http.StatusNotFound) && isAnswered(
			a.callJSON(ctx, http.MethodGet, "/containers/"+id+"/json", nil, nil, nil), http.StatusNotFound,
		) {
			return nil
		}
		if !isAnswered(err, http.StatusInternalServerError, http.StatusNotFound) || pause > maxRemovePause {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
