package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"retort/internal/core"
	"retort/internal/pipeline/paging"
	"retort/internal/sandbox"
)

// maxOpenLists bounds the lists that an execution reads at the same time, page by page. A program that leaves more of
// them unfinished can no longer continue the one that it has not read from for the longest time.
const maxOpenLists = 1000

// openLists holds the lists that an execution is reading page by page.
type openLists struct {
	mu    sync.Mutex
	byID  map[uint64]*paging.Reader
	order []uint64 // of byID, the one that was used last at the end
	last  uint64
}

// take removes and returns the list with this id, or begins one if the id is 0. Only one call at a time reads a list.
func (l *openLists) take(id uint64, begin func() *paging.Reader) (uint64, *paging.Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id == 0 {
		l.last++
		return l.last, begin()
	}
	r := l.byID[id]
	l.remove(id)
	return id, r
}

func (l *openLists) put(id uint64, r *paging.Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.order) == maxOpenLists {
		l.remove(l.order[0])
	}
	l.byID[id] = r
	l.order = append(l.order, id)
}

func (l *openLists) remove(id uint64) {
	delete(l.byID, id)
	for i, other := range l.order {
		if other == id {
			l.order = append(l.order[:i], l.order[i+1:]...)
			return
		}
	}
}

// pageRequest holds the arguments of the engine's own function "page". List is 0 for the first page, and later the
// number that the page before had.
type pageRequest struct {
	Server, Tool string
	Arguments    json.RawMessage
	List         uint64
}

// pageGuard returns the guard that answers calls of the engine's own function "page", by which the guest reads lists
// page by page. Each page is a call of the tool that passes all later guards. The answer is {"items": […], "list": N};
// without list, it is the last page.
func pageGuard(x ExecutionContext) CallGuard {
	lists := &openLists{byID: map[uint64]*paging.Reader{}}
	return func(next sandbox.ToolHost) sandbox.ToolHost {
		return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
			if c.Server != "" || c.Tool != "page" {
				return next.Call(ctx, c)
			}
			var q pageRequest
			if err := json.Unmarshal(c.Arguments, &q); err != nil {
				return core.CallResult{}, core.Errorf(core.KindInvalidArguments, "relay.pages", "pages: %v", err)
			}
			q.Arguments = orEmptyObject(q.Arguments)
			if q.Server == "" || bytes.TrimSpace(q.Arguments)[0] != '{' {
				return core.CallResult{}, core.Errorf(
					core.KindInvalidArguments, "relay.pages", "pages takes a tool of a server and an object with its arguments",
				)
			}
			return readPage(ctx, x, lists, next, q)
		})
	}
}

// readPage makes the call for one page. It returns the items, and the number of the list if there is another page.
func readPage(
	ctx context.Context, x ExecutionContext, lists *openLists, next sandbox.ToolHost, q pageRequest,
) (core.CallResult, error) {
	id, reader := lists.take(q.List, func() *paging.Reader { return newReader(x.Tools, q) })
	if reader == nil {
		gone := core.Errorf(core.KindLimit, "relay.pages", "the list of %s.%s can no longer be continued", q.Server, q.Tool)
		gone = gone.WithHint("a program can read %d lists at the same time, and each page once", maxOpenLists)
		return core.CallResult{}, gone.AtTool(q.Server, q.Tool)
	}
	result, err := next.Call(ctx, core.ToolCall{Server: q.Server, Tool: q.Tool, Arguments: reader.Arguments(q.Arguments)})
	if err != nil {
		return result, err
	}
	items, more, refused := pageOf(reader, q, result)
	if refused != nil {
		result.Claim.Free()
		return core.CallResult{}, refused.AtTool(q.Server, q.Tool)
	}
	page := append(append(make([]byte, 0, len(items)+32), `{"items":`...), items...)
	if more {
		lists.put(id, reader)
		page = strconv.AppendUint(append(page, `,"list":`...), id, 10)
	}
	result.Value = append(page, '}')
	return result, nil
}

func newReader(tools *core.Toolset, q pageRequest) *paging.Reader {
	if s, ok := tools.FindServer(q.Server); ok {
		if t, ok := s.FindTool(q.Tool); ok {
			return paging.NewReader(tools.QualifiedName(t), t.InputSchema)
		}
	}
	return paging.NewReader(q.Server+"."+q.Tool, nil) // the call fails
}

// pageOf returns the items in the answer to a request for a page, and whether there is another one.
func pageOf(reader *paging.Reader, q pageRequest, result core.CallResult) (json.RawMessage, bool, *core.Error) {
	if result.SavedFiles {
		return nil, false, core.Errorf(
			core.KindToolError, "relay.pages", "a page of %s.%s was saved as a file, because it is large or binary", q.Server, q.Tool,
		).WithHint("ask for smaller pages, or call the tool and read the file")
	}
	return reader.ReadPage(q.Arguments, result.Value)
}
