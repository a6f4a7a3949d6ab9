package model

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"strings"

	"retort/internal/core"
)

// maxEvent bounds one event of a stream, in bytes.
const maxEvent = 1 << 20

// partialReply collects the parts of an answer while it is streamed.
type partialReply struct {
	most    int // maximum size of the text, in bytes
	told    func(int)
	text    strings.Builder
	refusal strings.Builder
	last    replyChunk
}

// addChunk adds a piece of the answer. It reports whether the answer has reached its maximum length.
func (a *partialReply) addChunk(p replyChunk) (full bool) {
	a.text.WriteString(p.text)
	a.refusal.WriteString(p.refusal)
	if p.model != "" {
		a.last.model = clipText(p.model, 100)
	}
	a.last.input, a.last.output = max(a.last.input, p.input), max(a.last.output, p.output)
	if p.stop != "" {
		a.last.stop = p.stop
	}
	if a.told != nil && p.text != "" {
		a.told(a.text.Len())
	}
	return a.text.Len() > a.most || a.refusal.Len() > a.most
}

// finishReply returns the collected answer as a ModelReply, or an error if the model declined to answer. full says
// whether the answer has reached its maximum length.
func (a *partialReply) finishReply(full bool) (ModelReply, *core.Error) {
	switch {
	case a.refusal.Len() > 0:
		return ModelReply{}, declinedError(a.refusal.String())
	case a.last.stop == "refusal":
		return ModelReply{}, declinedError(cmp.Or(a.text.String(), "it gives no reason"))
	case a.last.stop == "content_filter":
		return ModelReply{}, declinedError("its content filter has withheld the answer")
	}
	return ModelReply{
		Text: clipText(a.text.String(), a.most), Model: core.EscapeIllegible(a.last.model), Input: a.last.input, Output: a.last.output,
		Cut: full || a.last.stop == "length" || a.last.stop == "max_tokens",
	}, nil
}

// readDocument reads an answer that is a single JSON document.
func (a *partialReply) readDocument(body io.Reader, parse chunkParser) (ModelReply, *core.Error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return ModelReply{}, goneError("the answer broke off: %v", err)
	}
	p, failed := parse(data)
	if failed != nil {
		return ModelReply{}, failed
	}
	return a.finishReply(a.addChunk(p))
}

// readEvents reads server-sent events until the answer is complete or reaches its maximum length. It does not read any
// further.
func (a *partialReply) readEvents(body io.Reader, parse chunkParser) (ModelReply, *core.Error) {
	in := bufio.NewReaderSize(body, maxEvent)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return ModelReply{}, goneError("the endpoint has sent an event of more than %d KB", maxEvent>>10)
		}
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok {
			data = bytes.TrimSpace(data)
			if string(data) == "[DONE]" {
				return a.finishReply(false)
			}
			p, failed := parse(data)
			if failed != nil {
				return ModelReply{}, failed
			}
			if a.addChunk(p) {
				return a.finishReply(true)
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && a.last.stop != "":
			return a.finishReply(false)
		default:
			return ModelReply{}, goneError("the answer broke off: %v", err)
		}
	}
}
