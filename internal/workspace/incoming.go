package workspace

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path"
	"strings"
)

// IncomingFile represents a workspace file that is being written. Programs see the file only after Commit, when it is
// complete. A caller that does not commit the file must call Abort.
type IncomingFile struct {
	workspace *Workspace
	name      string
	temp      string
	file      *os.File
	out       *bufio.Writer
	size      int64
	done      bool
}

// Create begins a new file in the folder files/, with a unique name that ends in suffix.
func (w *Workspace) Create(_ context.Context, suffix string) (*IncomingFile, error) {
	in := &IncomingFile{workspace: w, name: "files/" + strings.ToLower(rand.Text()[:12]) + suffix}
	in.temp = in.name + "." + rand.Text()[:8] + ".tmp"
	done, err := w.beginChange(in.name)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := w.makeFolders(in.name, path.Dir(in.name), spaceUsage{entries: 1}); err != nil {
		return nil, err
	}
	file, err := w.root.OpenFile(in.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, explainError(in.name, err)
	}
	w.used.entries++
	in.file = file
	in.out = bufio.NewWriterSize(in.file, 64<<10)
	return in, nil
}

// Write adds data to the file. Errors, for example about a full workspace, are *core.Error.
func (in *IncomingFile) Write(p []byte) (int, error) {
	if err := in.reserveSpace(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := in.out.Write(p)
	return n, explainError(in.name, err)
}

func (in *IncomingFile) reserveSpace(n int64) error {
	done, err := in.workspace.beginChange(in.name)
	if err != nil {
		return err
	}
	defer done()
	if err := in.workspace.checkRoom(in.name, spaceUsage{bytes: n}); err != nil {
		return err
	}
	in.workspace.used.bytes += n
	in.size += n
	return nil
}

// Commit makes the file visible and returns its path and its size in bytes.
func (in *IncomingFile) Commit() (name string, bytes int64, err error) {
	defer in.Abort()
	err = in.out.Flush()
	if err == nil {
		err = in.file.Sync()
	}
	if err = errors.Join(err, in.file.Close()); err == nil {
		err = in.workspace.root.Rename(in.temp, in.name)
	}
	in.done = err == nil
	return in.name, in.size, explainError(in.name, err)
}

// Abort removes a file that was not committed.
func (in *IncomingFile) Abort() {
	if in.done {
		return
	}
	in.done = true
	_ = in.file.Close()
	done, err := in.workspace.beginChange(in.name)
	_ = in.workspace.root.Remove(in.temp)
	if err != nil {
		return // it counts until the workspace is measured again
	}
	defer done()
	in.workspace.used = in.workspace.used.subtractUsage(spaceUsage{in.size, 1})
}
