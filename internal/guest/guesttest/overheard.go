package guesttest

import (
	"bytes"
	"io"
)

// Overheard is the output of a guest, of which somebody is told.
type Overheard struct {
	io.ReadCloser
	text string // that is waited for
	said func() // nil once it was called
	read []byte
}

// Tell has said called when text has been read. It must be called before the first Read that may
// have the text.
func (o *Overheard) Tell(text string, said func()) { o.text, o.said = text, said }

// Read implements io.Reader.
func (o *Overheard) Read(b []byte) (int, error) {
	n, err := o.ReadCloser.Read(b)
	if o.said != nil {
		if o.read = append(o.read, b[:n]...); bytes.Contains(o.read, []byte(o.text)) {
			o.said()
			o.said = nil
		}
	}
	return n, err
}
