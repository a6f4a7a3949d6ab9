package seal

import (
	"io/fs"
	"os"
)

// Stamp identifies one version of a file. The zero value means that the file is missing.
type Stamp struct{ info fs.FileInfo }

// StampOf returns the current stamp of a file.
func StampOf(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{}
	}
	return Stamp{info}
}

// Exists reports whether the file existed.
func (s Stamp) Exists() bool { return s.info != nil }

// Same reports whether both stamps are of the same version of a file: of the same file with the same size and
// modification time. Two stamps of missing files are the same.
func (s Stamp) Same(o Stamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == nil && o.info == nil
	}
	return os.SameFile(s.info, o.info) && s.info.Size() == o.info.Size() && s.info.ModTime().Equal(o.info.ModTime())
}
