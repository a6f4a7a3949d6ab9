package admin

import (
	"cmp"
	"os"
	"path"
	"unicode/utf8"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/privacy/redact"
	"retort/internal/workspace"
)

// maxExported is the largest file, in bytes, that can be exported.
const maxExported = 256 << 20

// WorkspaceExport counts the files and bytes that were exported.
type WorkspaceExport struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// ExportWorkspace writes the files of a session that match a glob into a new folder, for a person. In text files it
// replaces privacy tokens by the personal values. Only the owner can read the files. It records the export in the
// audit log before it writes the first file. After an error, the files written so far remain.
func ExportWorkspace(c engine.Config, session, glob, dir string) (out WorkspaceExport, err error) {
	s, err := openStores(c)
	if err != nil {
		return out, err
	}
	redactor, closeRedactor := s.OpenRedactor(func() config.Settings { return s.LoadedConfig().Settings })
	defer func() { err = cmp.Or(err, closeRedactor()) }()
	show, err := restoreFunc(redactor, sessionOf(session))
	if err != nil {
		return out, err
	}
	files, _ := engine.OpenWorkspaces(s.DataDir(), 0)
	w, err := files.Open(sessionOf(session))
	if err != nil {
		return out, err
	}
	defer w.Close()
	list, _, err := w.FindFiles("", glob, maxListed)
	if err != nil {
		return out, err
	}
	if err := s.RecordEvent(core.AuditEvent{
		Kind: core.EventFile, Session: sessionOf(session), Status: "export", Facts: map[string]any{"files": len(list)},
	}); err != nil {
		return out, core.Errorf(core.KindInternal, "workspace.export", "nothing was exported, because the export could not be recorded: %w", err)
	}
	return exportInto(w, list, show, dir)
}

// restoreFunc returns a function that replaces the privacy tokens of a session in a text by their values. Without a
// redactor (r is nil), that function returns the text unchanged.
func restoreFunc(r *redact.Redactor, session string) (func(string) string, error) {
	if r == nil {
		return func(text string) string { return text }, nil
	}
	open, err := r.OpenSession(redact.SessionName("", session))
	if err != nil {
		return nil, err
	}
	return open.ShowText, nil
}

// exportInto creates the folder dir and writes the listed files into it. It fails if the folder exists.
func exportInto(w *workspace.Workspace, list []core.FileEntry, show func(string) string, dir string) (out WorkspaceExport, err error) {
	failed := func(err error) (WorkspaceExport, error) {
		return out, core.Errorf(core.KindInvalidArguments, "workspace.export", "the files could not be exported: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return failed(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return failed(err)
	}
	defer root.Close()
	for _, f := range list {
		data, size, err := w.ReadAt(f.Path, 0, maxExported)
		if err != nil {
			return out, err
		}
		if size > int64(len(data)) {
			return out, core.Errorf(
				core.KindLimit, "workspace.export", "%s has more than %d bytes", f.Path, int64(maxExported),
			).WithHint("export the others with --glob")
		}
		if utf8.Valid(data) {
			data = []byte(show(string(data)))
		}
		if err := root.MkdirAll(path.Dir(f.Path), 0o700); err != nil {
			return failed(err)
		}
		if err := root.WriteFile(f.Path, data, 0o600); err != nil {
			return failed(err)
		}
		out.Files, out.Bytes = out.Files+1, out.Bytes+int64(len(data))
	}
	return out, nil
}
