package guesttest

import (
	"bytes"
	"io"
)

// OutputWatcher wraps the output of a guest and calls a function when the guest has printed a given text.
type OutputWatcher struct {
	io.ReadCloser
	text string // text to look for in the guest's output
	said func() // function to call when the text has appeared; nil after the call
	read []byte
}

// NotifyOn registers a function that is called once the guest has printed text. NotifyOn must be called before the
// first Read that may return the text.
func (o *OutputWatcher) NotifyOn(text string, said func()) { o.text, o.said = text, said }

// Read implements io.Reader.
func (o *OutputWatcher) Read(b []byte) (int, error) {
	n, err := o.ReadCloser.Read(b)
	if o.said != nil {
		if o.read = append(o.read, b[:n]...); bytes.Contains(o.read, []byte(o.text)) {
			o.said()
			o.said = nil
		}
	}
	return n, err
}
