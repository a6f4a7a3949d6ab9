package core

// FileWritten says what became of a file of a workspace.
type FileWritten struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"` // of the whole file now
}

// FilePart is a part of a file of a workspace as a model may see it.
type FilePart struct {
	Path       string `json:"path"`
	Content    string `json:"content"`
	Bytes      int64  `json:"bytes"`                 // of the whole, in the form of which Content is a part
	NextOffset int64  `json:"next_offset,omitempty"` // where the rest begins; 0: there is none
	MIMEType   string `json:"mimeType,omitempty"`    // of an image
	Image      []byte `json:"-"`                     // the whole, if the file is one
}

// FileEntry is a file in a listing.
type FileEntry struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	Modified string `json:"modified"` // RFC 3339
}

// FileList is the files of a workspace.
type FileList struct {
	Files []FileEntry `json:"files"`
	Total int         `json:"total,omitempty"` // if it is more than are listed
}

// Kept is what a session holds beyond its programs.
type Kept struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	State int   `json:"state"` // keys
}
