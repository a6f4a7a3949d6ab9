package client

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/core"
)

const (
	maxAddress   = 8 << 10 // maximum length of a page's address, in bytes
	maxPageID    = 256
	maxOpened    = 8  // maximum number of pages that one call may ask to open
	maxExpected  = 64 // maximum number of pages of a connection for whose completion the client waits
	pagePatience = 10 * time.Minute
	firstPause   = 3 * time.Second
	longestPause = 15 * time.Second
)

// loginPage represents a web page, usually for a login, that a server asks the person to open.
type loginPage struct {
	Mode    string `json:"mode"`
	ID      string `json:"elicitationId"`
	URL     string `json:"url"`
	Message string `json:"message"`

	host string
}

// readPage parses a server's request to open a page. It refuses addresses that must not be opened.
func readPage(params json.RawMessage) (p loginPage, _ *core.Error) {
	e := func(format string, args ...any) *core.Error {
		return core.Errorf(core.KindToolError, "upstream.page", format, args...).
			WithHint("report it to the developer of the server; nothing was opened")
	}
	if unmarshalExact(params, &p) != nil || p.Mode != "url" && p.Mode != "" {
		return p, e("the server asks a person for something that is neither a form nor a page")
	}
	u, err := url.Parse(p.URL)
	switch {
	case err != nil || u.Hostname() == "" || len(p.URL) > maxAddress || len(p.ID) > maxPageID || strings.ContainsFunc(p.URL, isUnprintable):
		return p, e("the server wants a person to open a page, but does not name a valid address")
	case u.User != nil:
		return p, e("the server wants a person to open a page at %s, with a misleading address that contains a user name", u.Hostname())
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return p, e("the server wants a person to open a page at %s, which is not https", u.Host)
	}
	p.host = u.Host
	return p, nil
}

// isUnprintable reports whether a character is not allowed in an address.
func isUnprintable(r rune) bool { return r <= ' ' || r > '~' }

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// unopenedError returns the error of a call that needs a web page which was not opened. why is the reason.
func (p loginPage) unopenedError(why string) *core.Error {
	e := core.Errorf(core.KindToolError, "upstream.page", "a person has to open a page at %s first, and %s: %w", p.host, why, core.ErrPage).
		WithHint(
			"ask a person to make this call with retort call in a terminal, which shows the address, or in a client that shows pages to open; then run the program again",
		)
	e.Message = "a person has to open a page at " + p.host + " first, and " + why
	return e
}

// showPage asks the person to open the server's page. Retort itself does not open it.
func (c ClientFeatures) showPage(
	ctx context.Context, l *serverLink, params json.RawMessage, peer *core.ClientPeer,
) (json.RawMessage, *core.Error) {
	p, refused := readPage(params)
	switch {
	case refused != nil:
		return nil, refused
	case !c.Elicit:
		return nil, p.unopenedError("the settings do not allow this server to ask anybody")
	case peer == nil || peer.Ask == nil:
		return nil, p.unopenedError("the client of this call cannot show a page to open")
	}
	u, _ := url.Parse(p.URL) // readPage has
	known, _ := json.Marshal(loginPage{Mode: "url", ID: p.ID, URL: u.Scheme + "://" + u.Host, Message: p.Message})
	answer, refused := peer.Ask(ctx, core.ServerRequest{Method: core.MethodElicit, Params: known, Page: p.URL, Done: l.expectCompletion(p.ID)})
	if refused != nil {
		e := p.unopenedError(refused.Message)
		e.Err = errors.Join(core.ErrPage, refused)
		return nil, e
	}
	return onlyAction(answer), nil
}

// onlyAction returns the client's answer to the request to open a page, reduced to the member "action". Such an
// answer has no other members, and an unreadable one does not count as consent.
func onlyAction(answer json.RawMessage) json.RawMessage {
	var a struct {
		Action string `json:"action"`
	}
	_ = unmarshalExact(answer, &a) // one that can't be read is no yes
	text, _ := json.Marshal(a)
	return text
}

// expectCompletion returns a channel that is closed when the server reports that the person has finished with a page.
func (l *serverLink) expectCompletion(id string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.pages[id]; c != nil {
		return c
	}
	c := make(chan struct{})
	if len(l.pages) >= maxExpected {
		return c
	}
	l.pages[id] = c
	time.AfterFunc(pagePatience, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.pages[id] == c {
			delete(l.pages, id)
		}
	})
	return c
}

// noteCompletion handles the server's report that the person has finished with a page. Reports about other pages than
// those that were shown are ignored.
func (l *serverLink) noteCompletion(params json.RawMessage) {
	var p struct {
		ID string `json:"elicitationId"`
	}
	if unmarshalExact(params, &p) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.pages[p.ID]; c != nil {
		close(c)
		delete(l.pages, p.ID)
	}
}

// noteUnopened records why a page was not opened during a call. If the server then fails the call, this becomes the
// call's error.
func (l *serverLink) noteUnopened(x *pendingCall, why *core.Error) {
	if !errors.Is(why, core.ErrPage) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x.page = why
}

// wantedPages returns the web pages that a person must open before the server processes a request, according to the
// server's error. It returns nil if the server's error has another cause.
func wantedPages(err error) (pages []json.RawMessage, refused *core.Error) {
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != codeInputRequiredURL {
		return nil, nil
	}
	var data struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if unmarshalExact(rpc.Data, &data) != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > maxOpened {
		return nil, core.Errorf(core.KindToolError, "upstream.page", "the server asks to open pages first, but names none or too many: %w", rpc).
			WithHint("report it to the developer of the server")
	}
	return data.Elicitations, nil
}

// makeRequest makes a request. If the server first wants pages to be opened, it asks a person to open them and
// repeats the request afterwards.
func (s *serverSession) makeRequest(ctx context.Context, x *pendingCall, method string, body json.RawMessage) (json.RawMessage, error) {
	result, err := s.link.callMethod(ctx, x, method, body)
	pages, refused := wantedPages(err)
	if refused != nil {
		return nil, refused
	}
	if pages == nil {
		return s.link.endRequest(x, result, err)
	}
	x.sent.Store(false) // the server has not looked at it
	last, waits, err := s.openPages(ctx, x, pages)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(pagePatience)
	for pause := firstPause; time.Now().Before(deadline); pause = min(2*pause, longestPause) {
		done, err := s.awaitPages(ctx, waits, pause)
		if err != nil {
			return nil, err
		}
		x.id = jsonrpc.ID{}
		result, err = s.link.callMethod(ctx, x, method, body)
		if again, refused := wantedPages(err); again == nil && refused == nil {
			return s.link.endRequest(x, result, err)
		}
		x.sent.Store(false)
		if done {
			return nil, last.unopenedError("the server still asks for the page after the person finished with it")
		}
	}
	return nil, last.unopenedError("its users did not finish in time")
}

// openPages asks the person to open web pages, one after another. The result waits holds a channel for each page,
// which is closed when the server reports that the person has finished with that page.
func (s *serverSession) openPages(
	ctx context.Context, x *pendingCall, pages []json.RawMessage,
) (last loginPage, waits []<-chan struct{}, _ error) {
	core.ClaimOf(ctx).Release()
	for _, params := range pages {
		p, refused := readPage(params)
		if refused != nil {
			return p, nil, refused
		}
		done := s.link.expectCompletion(p.ID)
		answer, refused := s.client.showPage(ctx, s.link, params, x.peer)
		if refused != nil {
			return p, nil, refused
		}
		if string(answer) != `{"action":"accept"}` {
			return p, nil, p.unopenedError("the person declined")
		}
		last, waits = p, append(waits, done)
	}
	return last, waits, nil
}

// awaitPages waits a limited time until the person has finished with all pages. The program's timeout is paused
// meanwhile.
func (s *serverSession) awaitPages(ctx context.Context, waits []<-chan struct{}, pause time.Duration) (done bool, _ error) {
	resume := core.PauseClock(ctx)
	defer resume()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for _, wait := range waits {
		select {
		case <-wait:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-s.link.ctx.Done():
			return false, s.link.cause
		}
	}
	return true, nil
}

// endRequest returns the result of a request. If the server failed the request after the person had not opened a
// page, the error explains that.
func (l *serverLink) endRequest(x *pendingCall, result json.RawMessage, err error) (json.RawMessage, error) {
	l.mu.Lock()
	why := x.page
	x.page = nil
	l.mu.Unlock()
	var rpc *jsonrpc.Error
	var failed struct {
		IsError bool `json:"isError"`
	}
	if why != nil && (errors.As(err, &rpc) || err == nil && unmarshalExact(result, &failed) == nil && failed.IsError) {
		return nil, why
	}
	return result, err
}
