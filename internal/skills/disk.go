package skills

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"retort/internal/base/seal"
	"retort/internal/core"
)

const (
	documentFile  = "SKILL.md"
	scriptFile    = "skill.ts"
	pythonFile    = "skill.py"
	historyFolder = ".history"
	savingFile    = ".saving" // file with the version that is being saved
)

// skillFiles holds the content of a skill's two files, SKILL.md and the code.
type skillFiles struct {
	document string
	file     string // name of the file with the code; "" if the skill has only SKILL.md
	code     string
}

func (t skillFiles) codeLanguage() core.Language {
	switch {
	case t.file == "":
		return ""
	case strings.HasSuffix(t.file, ".py"):
		return core.Python
	}
	return core.TypeScript
}

// contentVersion returns the version of a skill: the first hexadecimal digits of the SHA-256 hash of its files.
func (t skillFiles) contentVersion() string {
	const digits = 12
	h := sha256.New()
	for _, part := range []string{t.file, t.document, t.code} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:digits]
}

// readPair reads a skill's code and SKILL.md. Both belong to the same version even while another process saves the
// skill. A save writes a mark before it replaces the code, and removes the mark after it has replaced SKILL.md.
func readPair(root *os.Root, dir string) (skillFiles, error) {
	for range maxReadAttempts {
		before := markedVersion(root, dir)
		t, err := readFiles(root, dir)
		after := markedVersion(root, dir)
		if (isMissing(err) || err == nil && t.file == "") && (fileExists(root, dir+"/"+scriptFile) || fileExists(root, dir+"/"+pythonFile)) {
			continue // a save changed the language in the meantime, so the code has another file name
		}
		if err != nil {
			return t, err
		}
		again, err := readFile(root, dir+"/"+documentFile, MaxDocument)
		if err != nil && !isMissing(err) {
			return t, err
		}
		if before == "" && after == "" && again == t.document {
			return t, nil
		}
		if v := markedVersion(root, dir); v != "" {
			if t, err := readFiles(root, dir+"/"+historyFolder+"/"+v); err == nil {
				return t, nil
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	return skillFiles{}, core.Errorf(core.KindInternal, "skills", "the skill %s keeps changing while Retort reads it", dir)
}

func readFiles(root *os.Root, dir string) (t skillFiles, err error) {
	if t.document, err = readFile(root, dir+"/"+documentFile, MaxDocument); err != nil && !isMissing(err) {
		return t, err
	}
	for _, t.file = range []string{scriptFile, pythonFile} {
		if t.code, err = readFile(root, dir+"/"+t.file, MaxCode); err == nil || !isMissing(err) {
			return t, err
		}
	}
	if t.document != "" { // instructions, without code
		t.file = ""
		return t, nil
	}
	return t, err
}

// readPlain reads a skill that is a single file in a skills folder: <name>.ts or <name>.py. Hyphens in the name may
// be underscores in the file name.
func readPlain(root *os.Root, name string) (t skillFiles, err error) {
	for _, stem := range []string{name, strings.ReplaceAll(name, "-", "_")} {
		for _, suffix := range []string{".ts", ".py"} {
			t.file = stem + suffix
			if t.code, err = readFile(root, t.file, MaxCode); err == nil || !isMissing(err) {
				return t, err
			}
		}
	}
	return t, err
}

// plainName returns the name of the skill that a single file contains. It derives the name from the file's name. It
// returns "" if a file with that name is not a skill.
func plainName(file string) string {
	stem, suffix := strings.TrimSuffix(file, filepath.Ext(file)), filepath.Ext(file)
	name := strings.ReplaceAll(stem, "_", "-")
	if suffix != ".ts" && suffix != ".py" || core.ValidSkillName(name) != nil {
		return ""
	}
	return name
}

// maxReadAttempts bounds how many times a skill's files are read. They are read more than once if another process
// replaces them meanwhile.
const maxReadAttempts = 50

// openPlain opens a regular file and refuses links. If a save replaces the file between Lstat and Open, it tries
// again.
func openPlain(root *os.Root, name string) (*os.File, error) {
	for range maxReadAttempts {
		info, err := root.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, core.Errorf(core.KindPolicy, "skills", "%s is not a regular file; links are not followed", name)
		}
		f, err := seal.OpenIn(root, name, os.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		if opened, err := f.Stat(); err == nil && os.SameFile(info, opened) {
			return f, nil
		}
		_ = f.Close()
	}
	return nil, core.Errorf(core.KindPolicy, "skills", "%s was replaced while it was being read", name)
}

// readFile reads a regular file. It follows no links.
func readFile(root *os.Root, name string, most int64) (string, error) {
	f, err := openPlain(root, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return "", err
	case int64(len(data)) > most:
		return "", core.Errorf(core.KindLimit, "skills", "%s is larger than %d bytes", name, most)
	case !utf8.Valid(data):
		return "", core.Errorf(core.KindSyntax, "skills", "%s is not UTF-8 text", name)
	}
	return string(data), nil
}

// isFolder returns an error unless name is a folder and not a link.
func isFolder(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = core.Errorf(core.KindPolicy, "skills", "%s is not a folder; links are not followed", name)
	}
	return err
}

func fileExists(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

func isVersion(s string) bool { return len(s) == 12 && strings.Trim(s, "0123456789abcdef") == "" }

// versionHistory returns the names of the versions in a skill's history. The newest version comes first.
func versionHistory(root *os.Root, name string) []string {
	if isFolder(root, name+"/"+historyFolder) != nil {
		return nil
	}
	dir, err := root.Open(name + "/" + historyFolder)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(10 * maxHistory)
	type kept struct {
		version string
		at      time.Time
	}
	var list []kept
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && isVersion(e.Name()) {
			list = append(list, kept{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b kept) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(a.version, b.version)
	})
	var names []string
	for _, k := range list {
		names = append(names, k.version)
	}
	return names
}

// lockPlace locks a skills folder against saves by other processes. It waits for the lock for a limited time.
func (p SkillPlace) lockPlace() (unlock func(), err error) {
	const patience = 10 * time.Second
	unlock, err = seal.Lock(filepath.Join(p.Dir, ".lock"), patience)
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "skills", "skills cannot be written now: %w", err)
	}
	return unlock, nil
}

// markedVersion returns the version that an unfinished or interrupted save is installing, or "".
func markedVersion(root *os.Root, name string) string {
	v, err := readFile(root, name+"/"+savingFile, 64)
	if err != nil || !isVersion(v) || !fileExists(root, name+"/"+historyFolder+"/"+v+"/"+documentFile) {
		return ""
	}
	return v
}

// finishSave completes a save that was interrupted.
func (p SkillPlace) finishSave(name string) {
	unlock, err := p.lockPlace()
	if err != nil {
		return
	}
	defer unlock()
	root, err := p.openFolder(false)
	if err != nil {
		return
	}
	defer root.Close()
	if v := markedVersion(root, name); v != "" {
		_ = installVersion(root, name, v) // if it fails, readers find the version in the history
	}
}

// installVersion copies a version from the history to the skill's folder. It first writes a mark. Once the mark
// exists, readers use the version in the history.
func installVersion(root *os.Root, name, version string) error {
	t, err := readFiles(root, name+"/"+historyFolder+"/"+version)
	if err != nil {
		return err
	}
	if err := writeFile(root, name+"/"+savingFile, version); err != nil {
		return err
	}
	if t.file != "" {
		if err := writeFile(root, name+"/"+t.file, t.code); err != nil {
			return err
		}
	}
	for _, other := range []string{scriptFile, pythonFile} {
		if other != t.file {
			if err := root.Remove(name + "/" + other); err != nil && !isMissing(err) {
				return err
			}
		}
	}
	if err := writeFile(root, name+"/"+documentFile, t.document); err != nil {
		return err
	}
	if err := root.Remove(name + "/" + savingFile); err != nil {
		return err
	}
	return syncFolder(root, name)
}

// storeVersion stores the files of a version in the history, unless they are already there.
func storeVersion(root *os.Root, name string, t skillFiles) error {
	parent := name + "/" + historyFolder
	if err := makeFolder(root, parent); err != nil {
		return err
	}
	dir, fresh := parent+"/"+t.contentVersion(), parent+"/.new-"+rand.Text()[:8]
	if fileExists(root, dir+"/"+documentFile) {
		return nil
	}
	if err := makeFolder(root, fresh); err != nil {
		return err
	}
	files := map[string]string{documentFile: t.document}
	if t.file != "" {
		files[t.file] = t.code
	}
	for file, content := range files {
		if err := writeFile(root, fresh+"/"+file, content); err != nil {
			return err
		}
	}
	if err := root.Rename(fresh, dir); err != nil {
		return err
	}
	return syncFolder(root, parent)
}

func makeFolder(root *os.Root, name string) error {
	err := root.Mkdir(name, 0o755)
	if err != nil && !os.IsExist(err) {
		return err
	}
	if err := isFolder(root, name); err != nil {
		return err
	}
	return syncFolder(root, path.Dir(name))
}

// writeFile replaces a file atomically: at any moment, even after a crash, the file has either the old or the new
// content.
func writeFile(root *os.Root, name, content string) error {
	fresh := path.Dir(name) + "/.new-" + rand.Text()[:8]
	f, err := root.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = root.Rename(fresh, name)
	}
	if err != nil {
		_ = root.Remove(fresh)
		return err
	}
	return syncFolder(root, path.Dir(name))
}
