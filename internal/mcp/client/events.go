package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"time"
)

// event represents one server-sent event.
type event struct {
	name  string // "message" if the server gave none
	data  []byte
	large *spooled // instead of data
}

// events reads a stream of server-sent events (WHATWG HTML, section 9.2) in bounded memory. Lines end with LF or CR
// LF. A lone CR, which servers do not send, does not end a line here.
type events struct {
	lines *frames
	limit int64
	data  counting // of an event with several lines

	id    string        // of the last event that had one
	retry time.Duration // asked for by the server, 0 if not
}

const (
	longestEventID = 1 << 10
	longestRetry   = 30 * time.Second
)

func newEvents(ctx context.Context, r io.Reader, limit int64, a account, place *spool) *events {
	e := &events{lines: newFrames(ctx, r, limit, a, place), limit: limit, data: counting{account: a}}
	e.lines.prefix = []byte("data:")
	if bom, _ := e.lines.in.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		_, _ = e.lines.in.Discard(3)
	}
	return e
}

// next returns the next event that has data. An event over the limit is skipped
// and reported as *tooLong; other errors are final. An event that the end of the
// stream cuts off does not count.
func (e *events) next() (event, error) {
	ev := event{name: "message"}
	e.data.free()
	var skipped *tooLong
	for {
		line, err := e.lines.line()
		var long *tooLong
		var large *spooled
		switch {
		case errors.As(err, &large) && large.broken == nil && ev.large == nil:
			ev.large = large
			continue
		case errors.As(err, &long) && !long.endless:
			skipped = long
			continue
		case err != nil:
			ev.drop()
			if large != nil {
				err = errors.Join(io.ErrUnexpectedEOF, large.broken)
				_ = large.Close()
			}
			return event{}, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) > 0 && int64(len(ev.data)+len(line)) > e.limit:
			skipped = &tooLong{limit: e.limit}
		case len(ev.data) > 0 && len(line) > 0 && !e.data.grow(int64(len(ev.data)+len(line))):
			skipped = &tooLong{limit: int64(len(ev.data))}
		case len(line) > 0:
			e.field(&ev, line)
		case skipped != nil:
			ev.drop()
			return event{}, skipped
		case ev.large != nil && len(ev.data) > 0:
			ev.drop() // more than one line, of which one is not in memory
			return event{}, &tooLong{limit: e.limit}
		case ev.large != nil:
			return ev, nil
		case len(ev.data) > 0:
			return ev, nil
		default:
			ev = event{name: "message"}
		}
	}
}

// free releases the memory of the reader. Nothing may be read afterwards.
func (e *events) free() {
	e.data.free()
	e.lines.free()
}

// drop releases the part of an event that is on disk.
func (ev *event) drop() {
	if ev.large != nil {
		_ = ev.large.Close()
	}
}

// field takes in one line of an event; comments and unknown fields are ignored.
func (e *events) field(ev *event, line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		ev.name = string(value)
	case "data":
		if len(ev.data) == 0 { // the usual case: the event keeps the memory of the line
			ev.data = value
			e.data.adopt(&e.lines.counting)
			return
		}
		ev.data = append(append(ev.data, '\n'), value...)
	case "id":
		if len(value) <= longestEventID && bytes.IndexByte(value, 0) < 0 {
			e.id = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.retry = min(time.Duration(ms)*time.Millisecond, longestRetry)
		}
	}
}
