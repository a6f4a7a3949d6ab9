package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"retort/internal/core"
)

// newLogger returns a logger that writes to standard error, with the level and format that the flags set.
func (a *app) newLogger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "log", "unknown log level %q", a.logLevel).
			WithHint("the levels are debug, info, warn and error")
	}
	o := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch a.logForm {
	case "text":
		handler = slog.NewTextHandler(&a.log, o)
	case "json":
		handler, a.log.lostForm = slog.NewJSONHandler(&a.log, o), `{"level":"WARN","msg":"log lines were lost","lines":%d}`+"\n"
	default:
		return nil, core.Errorf(core.KindInvalidArguments, "log", "unknown log format %q", a.logForm).WithHint("the formats are text and json")
	}
	a.log.startWriting(a.stderr)
	return slog.New(handler), nil
}

// lossyWriter implements an io.Writer that never blocks. If the lines are read too slowly, it drops lines and counts
// them.
type lossyWriter struct {
	lines    chan []byte
	lost     atomic.Int64
	lostForm string // format of the message about dropped lines
	done     chan struct{}
}

func (l *lossyWriter) startWriting(w io.Writer) {
	l.lines, l.done = make(chan []byte, 1024), make(chan struct{})
	go func() {
		defer close(l.done)
		for line := range l.lines {
			if line == nil {
				return
			}
			if n := l.lost.Swap(0); n > 0 {
				_, _ = fmt.Fprintf(w, cmp.Or(l.lostForm, "%d log lines were lost\n"), n)
			}
			_, _ = w.Write(line)
		}
	}()
}

// Write queues one line, or drops it if the queue is full.
func (l *lossyWriter) Write(line []byte) (int, error) {
	select {
	case l.lines <- append([]byte(nil), line...):
	default:
		l.lost.Add(1)
	}
	return len(line), nil
}

// flushBriefly waits at most 200 ms for the queued lines to be written. Call it before the process ends.
func (l *lossyWriter) flushBriefly() {
	const moment = 200 * time.Millisecond
	if l.lines == nil {
		return
	}
	select {
	case l.lines <- nil:
	default:
	}
	select {
	case <-l.done:
	case <-time.After(moment):
	}
}
