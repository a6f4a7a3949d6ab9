package core

import (
	"encoding/json"
	"io"
)

// Spooled is the answer to a call that is too large to be held in memory. Whoever gets it
// closes it.
type Spooled struct {
	// Result is MCP's CallToolResult without its large parts: "" or null stands for each.
	Result json.RawMessage
	Parts  []SpooledPart // in the order of the answer
	Bytes  int64         // of the whole message
	io.ReaderAt
	io.Closer
}

// The members of a result that can be spooled.
const (
	SpooledStructured = "structuredContent"
	SpooledText       = "text"
	SpooledData       = "data"
	SpooledBlob       = "blob"
)

// SpooledPart is where a large part of a result is: JSON as it was sent, or what was
// between the quotes of a string.
type SpooledPart struct {
	Index         int    // in content; -1 for structuredContent
	Member        string // text and blob may be those of a resource
	Offset, Bytes int64
}

// Part reads a part as it was sent.
func (s *Spooled) Part(p SpooledPart) *io.SectionReader {
	return io.NewSectionReader(s.ReaderAt, p.Offset, p.Bytes)
}
