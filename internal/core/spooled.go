package core

import (
	"encoding/json"
	"io"
)

// SpooledAnswer holds an answer to a call that is too large for memory. The large parts of the answer are in a file.
// The receiver must close the SpooledAnswer.
type SpooledAnswer struct {
	// Result holds MCP's CallToolResult with each large part replaced by "" or null.
	Result json.RawMessage
	Parts  []SpooledPart // in the order of the answer
	Bytes  int64         // of the whole message
	io.ReaderAt
	io.Closer
}

// The members of a tool result whose values can be stored on disk.
const (
	SpooledStructured = "structuredContent"
	SpooledText       = "text"
	SpooledData       = "data"
	SpooledBlob       = "blob"
)

// SpooledPart locates one large part of a result on disk. The part is JSON exactly as it was sent, or the text
// between the quotes of a string.
type SpooledPart struct {
	Index         int    // in content; -1 for structuredContent
	Member        string // text and blob may be those of a resource
	Offset, Bytes int64
}

// OpenPart returns a reader of one large part of the answer. It reads the bytes exactly as the server sent them.
func (s *SpooledAnswer) OpenPart(p SpooledPart) *io.SectionReader {
	return io.NewSectionReader(s.ReaderAt, p.Offset, p.Bytes)
}
