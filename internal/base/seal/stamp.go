package seal

import (
	"io/fs"
	"os"
)

// Stamp describes whether a file is another one than before. The zero value is that of no file.
type Stamp struct{ info fs.FileInfo }

// StampOf returns the stamp of a file as it is now.
func StampOf(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{}
	}
	return Stamp{info}
}

// Exists reports whether there was a file.
func (s Stamp) Exists() bool { return s.info != nil }

// Same reports whether nobody has written the file in between; no file is the same as none.
func (s Stamp) Same(o Stamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == nil && o.info == nil
	}
	return os.SameFile(s.info, o.info) && s.info.Size() == o.info.Size() && s.info.ModTime().Equal(o.info.ModTime())
}
