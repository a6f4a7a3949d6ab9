package seal

import (
	"io/fs"
	"os"
)

// FileStamp describes one version of a file. Compare two stamps to find out whether the file has changed. The zero
// value means that the file is missing.
type FileStamp struct{ info fs.FileInfo }

// StampOf returns the stamp of a file in its current version.
func StampOf(path string) FileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return FileStamp{}
	}
	return FileStamp{info}
}

// FileExists reports whether the file existed.
func (s FileStamp) FileExists() bool { return s.info != nil }

// IsSame reports whether both stamps describe the same version: the same file with the same size and modification
// time. Two stamps of missing files are the same.
func (s FileStamp) IsSame(o FileStamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == nil && o.info == nil
	}
	return os.SameFile(s.info, o.info) && s.info.Size() == o.info.Size() && s.info.ModTime().Equal(o.info.ModTime())
}
