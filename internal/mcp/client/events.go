package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"time"
)

// serverSentEvent is one event of a stream of server-sent events.
type serverSentEvent struct {
	name  string // name of the event; "message" if the server gave none
	data  []byte
	large *spooledMessage // event data that is stored on disk; set instead of data
}

// eventReader reads a stream of server-sent events (WHATWG HTML, section 9.2) in bounded memory. Lines end with LF or
// CR LF. A lone CR, which servers do not send, does not end a line.
type eventReader struct {
	lines *lineReader
	limit int64
	data  messageMemory // data of an event that has several data lines

	id    string        // id of the last event that had one
	retry time.Duration // reconnection delay that the server has requested; 0 if none
}

const (
	longestEventID = 1 << 10
	longestRetry   = 30 * time.Second
)

func newEvents(ctx context.Context, r io.Reader, limit int64, a memoryAccount, place *spoolDir) *eventReader {
	e := &eventReader{lines: newFrames(ctx, r, limit, a, place), limit: limit, data: messageMemory{memoryAccount: a}}
	e.lines.prefix = []byte("data:")
	if bom, _ := e.lines.in.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		_, _ = e.lines.in.Discard(3)
	}
	return e
}

// nextEvent returns the next event that has data. An event over the size limit is skipped and reported as *tooLong;
// other errors are final. An event that is incomplete at the end of the stream is ignored.
func (e *eventReader) nextEvent() (serverSentEvent, error) {
	ev := serverSentEvent{name: "message"}
	e.data.releaseBytes()
	var skipped *tooLong
	for {
		line, err := e.lines.readLine()
		var long *tooLong
		var large *spooledMessage
		switch {
		case errors.As(err, &large) && large.broken == nil && ev.large == nil:
			ev.large = large
			continue
		case errors.As(err, &long) && !long.endless:
			skipped = long
			continue
		case err != nil:
			ev.dropSpooled()
			if large != nil {
				err = errors.Join(io.ErrUnexpectedEOF, large.broken)
				_ = large.Close()
			}
			return serverSentEvent{}, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) > 0 && int64(len(ev.data)+len(line)) > e.limit:
			skipped = &tooLong{limit: e.limit}
		case len(ev.data) > 0 && len(line) > 0 && !e.data.reserveBytes(int64(len(ev.data)+len(line))):
			skipped = &tooLong{limit: int64(len(ev.data))}
		case len(line) > 0:
			e.readField(&ev, line)
		case skipped != nil:
			ev.dropSpooled()
			return serverSentEvent{}, skipped
		case ev.large != nil && len(ev.data) > 0:
			ev.dropSpooled() // more than one line, of which one is not in memory
			return serverSentEvent{}, &tooLong{limit: e.limit}
		case ev.large != nil:
			return ev, nil
		case len(ev.data) > 0:
			return ev, nil
		default:
			ev = serverSentEvent{name: "message"}
		}
	}
}

// releaseMemory releases the reader's memory. The reader must not be used afterwards.
func (e *eventReader) releaseMemory() {
	e.data.releaseBytes()
	e.lines.releaseBytes()
}

// dropSpooled removes the part of an event that is stored on disk.
func (ev *serverSentEvent) dropSpooled() {
	if ev.large != nil {
		_ = ev.large.Close()
	}
}

// readField adds one line of the stream to an event. Comments and unknown fields are ignored.
func (e *eventReader) readField(ev *serverSentEvent, line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		ev.name = string(value)
	case "data":
		if len(ev.data) == 0 { // the usual case: the event keeps the memory of the line
			ev.data = value
			e.data.takeOver(&e.lines.messageMemory)
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
