package pipeline

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/policy"
	"retort/internal/workspace"
)

// Bounds on one request to read or list workspace files. maxListed bounds the number of listed files. The other
// bounds are in bytes.
const (
	defaultPart = 8 << 10
	maxPart     = 256 << 10
	maxImage    = 5 << 20
	maxHidden   = 32 << 20 // of a file that is searched for personal data
	maxListed   = 500
)

// imageTypes lists the image types that models accept.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// WriteFile writes or appends to a file of a session's workspace. encoding is "utf8", "base64", or "" for utf8.
func (p *Pipeline) WriteFile(session, name, content, encoding string, appends bool) (out core.FileWritten, err error) {
	data := []byte(content)
	switch encoding {
	case "", "utf8":
	case "base64":
		if data, err = base64.StdEncoding.DecodeString(content); err != nil {
			return out, core.Errorf(core.KindInvalidArguments, "workspace.write", "the content is not base64: %v", err)
		}
	default:
		return out, badEncoding(encoding)
	}
	if refused := p.recordEvent(
		core.EventFile, session, "write", map[string]any{"bytes": len(data), "append": appends}, requestBody{Name: name},
	); refused != nil {
		return out, refused
	}
	err = p.useFile(session, name, policy.WriteFile, func(w *workspace.Workspace, path string) error {
		write := w.Write
		if appends {
			write = w.AppendFile
		}
		if err := write(path, data); err != nil {
			return err
		}
		p.copyOut(session, w)
		info, err := w.Stat(path)
		out = core.FileWritten{Path: path, Bytes: info.Bytes}
		return err
	})
	return out, err
}

func badEncoding(encoding string) error {
	return core.Errorf(core.KindInvalidArguments, "workspace", "unknown encoding %q", encoding).WithHint("utf8 or base64")
}

// useFile checks that the policy allows this use of a workspace file, and returns an error if not. Otherwise it opens
// the session's workspace and calls the function do with the workspace and the file's normalized path.
func (p *Pipeline) useFile(session, name string, use policy.FileUse, do func(w *workspace.Workspace, path string) error) error {
	path, err := workspace.NormalizePath(name)
	if err != nil {
		return err
	}
	if refused := p.Policy.CheckFile(cmp.Or(path, "."), use); refused != nil {
		return refused
	}
	w, err := p.Workspaces.Open(p.ownSessionName(session))
	if err != nil {
		return err
	}
	defer w.Close()
	return do(w, path)
}

// ReadFile returns a part of a workspace file as the model may see it, with personal data hidden. The arguments
// offset and limit are in bytes of the text in which personal data is already hidden. A limit of 0 means a default.
// Images are returned whole.
func (p *Pipeline) ReadFile(session, name string, offset, limit int64, encoding string) (part core.FilePart, err error) {
	if encoding != "" && encoding != "utf8" && encoding != "base64" {
		return part, badEncoding(encoding)
	}
	if offset < 0 || limit < 0 {
		return part, core.Errorf(core.KindInvalidArguments, "workspace.read", "offset and limit must not be negative")
	}
	err = p.useFile(session, name, policy.ReadFile, func(w *workspace.Workspace, path string) error {
		r := fileReader{pipeline: p, session: session, workspace: w, path: path, encoding: encoding}
		part, err = r.readPart(offset, min(positiveOr(limit, defaultPart), maxPart))
		return err
	})
	if err != nil {
		return part, err
	}
	if refused := p.recordEvent(
		core.EventFile, session, "read", map[string]any{"offset": offset, "bytes": part.Bytes}, requestBody{Name: name},
	); refused != nil {
		return core.FilePart{}, refused
	}
	return part, nil
}

func positiveOr(n, otherwise int64) int64 {
	if n == 0 {
		return otherwise
	}
	return n
}

// fileReader reads one file for the model.
type fileReader struct {
	pipeline  *Pipeline
	session   string
	workspace *workspace.Workspace
	path      string
	encoding  string
}

func (r *fileReader) readPart(offset, limit int64) (core.FilePart, error) {
	head, size, err := r.workspace.ReadAt(r.path, 0, 512)
	if err != nil {
		return core.FilePart{}, err
	}
	kind := http.DetectContentType(head)
	if slices.Contains(imageTypes, kind) && r.encoding == "" {
		return r.readImage(kind, size)
	}
	data, size, err := r.maskedPart(offset, limit, size, slices.Contains(imageTypes, kind))
	if err != nil {
		return core.FilePart{}, err
	}
	out := core.FilePart{Path: r.path, Bytes: size}
	if r.encoding == "base64" {
		out.Content = base64.StdEncoding.EncodeToString(data)
	} else {
		if data, err = trimPartialRune(r.path, data); err != nil {
			return out, err
		}
		out.Content = string(data)
	}
	if next := offset + int64(len(data)); next < size {
		out.NextOffset = next
	}
	return out, nil
}

// trimPartialRune returns data without a partial character at its end. It returns an error if the rest is not valid
// UTF-8.
func trimPartialRune(path string, data []byte) ([]byte, error) {
	whole := data
	for cut := 0; cut < utf8.UTFMax && len(whole) > 0 && !utf8.Valid(whole); cut++ {
		whole = whole[:len(whole)-1]
	}
	if !utf8.Valid(whole) || len(whole) == 0 && len(data) > 0 {
		return nil, core.Errorf(core.KindInvalidArguments, "workspace.read", "%s is not UTF-8 text at this offset", path).
			WithHint("read it with encoding base64, at an offset from next_offset, or in a program")
	}
	return whole, nil
}

func (r *fileReader) readImage(kind string, size int64) (core.FilePart, error) {
	if size > maxImage {
		return core.FilePart{}, core.Errorf(
			core.KindLimit, "workspace.read", "%s is an image of %d bytes; images of at most %d bytes are shown", r.path, size, maxImage,
		)
	}
	data, _, err := r.workspace.ReadAt(r.path, 0, size)
	return core.FilePart{Path: r.path, Bytes: size, MIMEType: kind, Image: data}, err
}

// maskedPart returns a part of the file as the model may see it. Personal data is hidden in the whole file first, because
// a part that begins or ends inside a value would reveal some of it.
func (r *fileReader) maskedPart(offset, limit, size int64, image bool) ([]byte, int64, error) {
	screen, err := r.pipeline.privacySession(r.session)
	if err != nil {
		return nil, 0, err
	}
	if screen == nil || image {
		return r.workspace.ReadAt(r.path, offset, limit)
	}
	if size > maxHidden {
		return nil, 0, core.Errorf(
			core.KindLimit, "workspace.read", "%s has %d bytes; at most %d are searched for personal data", r.path, size,
			maxHidden,
		).
			WithHint("read the parts that you need in a program")
	}
	data, _, err := r.workspace.ReadAt(r.path, 0, size)
	if err != nil {
		return nil, 0, err
	}
	if !utf8.Valid(data) {
		return nil, 0, core.Errorf(core.KindPolicy, "workspace.read", "%s is not text, so personal data in it could not be hidden", r.path).
			WithHint("read it in a program")
	}
	if data, err = screen.RedactOutgoing(data); err != nil {
		return nil, 0, err
	}
	if err := screen.SyncTokens(); err != nil {
		return nil, 0, err
	}
	from := min(offset, int64(len(data)))
	return data[from:min(from+limit, int64(len(data)))], int64(len(data)), nil
}

// ListFiles lists the files of a session's workspace below a folder that match a glob.
func (p *Pipeline) ListFiles(session, below, glob string) (list core.FileList, err error) {
	screen, err := p.privacySession(session)
	if err != nil {
		return list, err
	}
	err = p.useFile(session, below, policy.LookAt, func(w *workspace.Workspace, path string) error {
		files, total, err := w.FindFiles(path, glob, maxListed)
		listed := len(files)
		files = slices.DeleteFunc(files, func(f core.FileEntry) bool { return p.Policy.CheckFile(f.Path, policy.LookAt) != nil })
		total -= listed - len(files)
		list.Files = append([]core.FileEntry{}, files...)
		if total > len(files) {
			list.Total = total
		}
		return err
	})
	for i := range list.Files {
		if screen != nil {
			list.Files[i].Path = screen.RedactText(list.Files[i].Path)
		}
	}
	return list, err
}

// WorkspaceUsage returns how much a session stores in its workspace and in its state. Files and state that cannot be
// read are not counted.
func (p *Pipeline) WorkspaceUsage(session string) (k core.WorkspaceUsage) {
	own := p.ownSessionName(session)
	k.Files, k.Bytes = p.Workspaces.SessionSize(own)
	if keys, err := p.States.StateFor(own).ListKeys(); err == nil {
		k.State = len(keys)
	}
	return k
}
