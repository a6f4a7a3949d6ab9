package core

// FileWritten reports the result of writing a workspace file.
type FileWritten struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"` // of the whole file now
}

// FilePart represents a part of a workspace file, with personal data and secrets hidden.
type FilePart struct {
	Path       string `json:"path"`
	Content    string `json:"content"`
	Bytes      int64  `json:"bytes"`                 // of the whole file, in the encoding that Content is a part of
	NextOffset int64  `json:"next_offset,omitempty"` // where the rest begins; 0 at the end of the file
	MIMEType   string `json:"mimeType,omitempty"`    // of an image
	Image      []byte `json:"-"`                     // the whole, if the file is one
}

// FileEntry describes one file in a list.
type FileEntry struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	Modified string `json:"modified"` // RFC 3339
}

// FileList lists the files of a workspace.
type FileList struct {
	Files []FileEntry `json:"files"`
	Total int         `json:"total,omitempty"` // if it is more than are listed
}

// WorkspaceUsage counts the files, bytes and state keys that a session stores.
type WorkspaceUsage struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	State int   `json:"state"` // keys
}
