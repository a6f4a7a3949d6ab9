package egress

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"retort/internal/core"
)

const (
	maxRedirects    = 20
	maxHeaders      = 200
	maxHeaderBytes  = 64 << 10
	requestTimeout  = 5 * time.Minute
	maxRequestBytes = 16 << 20
)

// Request describes a request that a program makes with fetch.
type Request struct {
	ID      string      `json:"id"` // id with which AbortRequest cancels the request; may be empty
	URL     string      `json:"url"`
	Method  string      `json:"method"`
	Headers [][2]string `json:"headers"`
	Text    *string     `json:"text"`   // body of the request, as text
	Base64  *string     `json:"base64"` // body of the request in base64, if it is not text
	// what to do about redirects: "follow", "error" or "manual"; "" means "follow"
	Redirect string `json:"redirect"`
}

// Response holds the response to a Request. Text holds a body that is valid UTF-8.
type Response struct {
	URL        string      `json:"url"`
	Redirected bool        `json:"redirected,omitempty"`
	Status     int         `json:"status"`
	StatusText string      `json:"statusText"`
	Headers    [][2]string `json:"headers"`
	Text       string      `json:"text,omitempty"`
	Base64     string      `json:"base64,omitempty"`
}

// HostFunctions returns the functions that programs can call: fetch and fetch_abort.
func (s *Session) HostFunctions() map[string]func(ctx context.Context, arguments json.RawMessage) (any, error) {
	return map[string]func(context.Context, json.RawMessage) (any, error){
		"fetch": func(ctx context.Context, raw json.RawMessage) (any, error) {
			var r Request
			if err := json.Unmarshal(raw, &r); err != nil {
				return nil, core.Errorf(core.KindInvalidArguments, "egress", "fetch: %v", err)
			}
			answer, failed := s.FetchURL(ctx, r)
			if failed != nil {
				return nil, failed
			}
			return answer, nil
		},
		"fetch_abort": func(_ context.Context, raw json.RawMessage) (any, error) {
			var r Request
			_ = json.Unmarshal(raw, &r) // nothing has no such id
			s.AbortRequest(r.ID)
			return true, nil
		},
	}
}

// AbortRequest cancels the request with this id, if it is running.
func (s *Session) AbortRequest(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.aborts[id]; cancel != nil {
		cancel()
	}
}

// FetchURL makes a request for a program and follows redirects. Each redirect is checked like the first request.
func (s *Session) FetchURL(ctx context.Context, r Request) (Response, *core.Error) {
	if !s.beginUse() {
		return Response{}, core.Errorf(core.KindCancelled, "egress", "the program has ended")
	}
	defer s.open.Done()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if r.ID != "" {
		s.mu.Lock()
		s.aborts[r.ID] = cancel
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.aborts, r.ID)
		}()
	}
	free, ok := s.takeSlot(ctx)
	if !ok {
		return Response{}, core.Errorf(core.KindCancelled, "egress", "the request was cancelled")
	}
	defer free()
	f, refused := s.prepareFetch(r)
	if refused != nil {
		return Response{}, refused
	}
	return f.followRedirects(ctx)
}

// fetchRequest holds the state of one running call of FetchURL.
type fetchRequest struct {
	*Session
	method   string
	header   http.Header
	body     []byte
	url      *url.URL
	target   Target
	redirect string
	hops     int
}

func (s *Session) prepareFetch(r Request) (*fetchRequest, *core.Error) {
	f := &fetchRequest{Session: s, method: strings.ToUpper(r.Method), header: http.Header{}, redirect: r.Redirect}
	var refused *core.Error
	if f.url, f.target, refused = parseURL(r.URL); refused != nil {
		return nil, s.noteRefusal(f.target, refused)
	}
	if f.method == "" {
		f.method = http.MethodGet
	}
	if !isHeaderName(f.method) || slices.Contains([]string{"CONNECT", "TRACE", "TRACK"}, f.method) {
		return nil, s.noteRefusal(f.target, policyErrorf("the method %s is not allowed", quoteShort(r.Method)))
	}
	if refused := f.addHeaders(r.Headers); refused != nil {
		return nil, s.noteRefusal(f.target, refused)
	}
	switch {
	case r.Base64 != nil:
		body, err := base64.StdEncoding.DecodeString(*r.Base64)
		if err != nil {
			return nil, core.Errorf(core.KindInvalidArguments, "egress", "fetch: the body is not valid base64")
		}
		f.body = body
	case r.Text != nil:
		f.body = []byte(*r.Text)
	}
	if len(f.body) > maxRequestBytes {
		return nil, s.noteRefusal(
			f.target,
			core.Errorf(core.KindLimit, "egress", "the body has %d bytes; at most %d are allowed", len(f.body), maxRequestBytes),
		)
	}
	return f, nil
}

func (f *fetchRequest) addHeaders(list [][2]string) *core.Error {
	size := 0
	for _, h := range list {
		size += len(h[0]) + len(h[1])
		if !isHeaderName(h[0]) || !isHeaderValue(h[1]) {
			return policyErrorf("the header %s cannot be sent", quoteShort(h[0]))
		}
		if !isReservedHeader(h[0]) {
			f.header.Add(h[0], h[1])
		}
	}
	if len(list) > maxHeaders || size > maxHeaderBytes {
		return core.Errorf(
			core.KindLimit, "egress", "the request has %d headers with %d bytes; at most %d headers with %d bytes are allowed", len(list), size,
			maxHeaders, maxHeaderBytes,
		)
	}
	return nil
}

func (f *fetchRequest) followRedirects(ctx context.Context) (Response, *core.Error) {
	for {
		answer, next, failed := f.sendOnce(ctx)
		if failed != nil || next == "" || f.redirect == "manual" {
			return answer, failed
		}
		if f.redirect == "error" {
			return Response{}, core.Errorf(core.KindRuntime, "egress", "%s redirects, which the program does not allow (redirect: error)", f.target.Host)
		}
		if f.hops++; f.hops > maxRedirects {
			return Response{}, core.Errorf(core.KindUpstreamGone, "egress", "%s redirects more than %d times", f.target.Host, maxRedirects)
		}
		if refused := f.redirectTo(answer.Status, next); refused != nil {
			return Response{}, refused
		}
	}
}

// sendOnce makes one request without following redirects. next is the URL that the response redirects to, or "" if the
// response is final.
func (f *fetchRequest) sendOnce(ctx context.Context) (answer Response, next string, failed *core.Error) {
	if refused := f.checkDryRun(f.target, f.method); refused != nil {
		return answer, "", refused
	}
	if _, refused := f.admitRequest(f.target, f.target.Protocol); refused != nil {
		return answer, "", refused
	}
	began := time.Now()
	defer func() {
		f.noteEnd(f.target, began, int64(len(f.body)), int64(len(answer.Text)+len(answer.Base64)*3/4), failed)
	}()
	req, err := http.NewRequestWithContext(ctx, f.method, f.url.String(), bytes.NewReader(f.body))
	if err != nil {
		return answer, "", policyErrorf("%s cannot be requested", quoteShort(f.url.Host))
	}
	req.Header = f.header.Clone()
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "retort")
	}
	resp, failed := f.roundTrip(req, f.target)
	if failed != nil {
		return answer, "", failed
	}
	defer resp.Body.Close()
	if answer, failed = f.readResponse(ctx, resp); failed != nil {
		return answer, "", failed
	}
	if slices.Contains([]int{301, 302, 303, 307, 308}, resp.StatusCode) {
		next = resp.Header.Get("Location")
	}
	return answer, next, nil
}

// readResponse reads a response and masks secrets in it.
func (f *fetchRequest) readResponse(ctx context.Context, resp *http.Response) (Response, *core.Error) {
	answer := Response{
		URL: f.url.String(), Redirected: f.hops > 0, Status: resp.StatusCode, StatusText: f.maskText(statusText(resp)),
		Headers: [][2]string{},
	}
	for name, values := range resp.Header {
		for _, v := range values {
			answer.Headers = append(answer.Headers, [2]string{strings.ToLower(name), f.maskText(v)})
		}
	}
	slices.SortFunc(answer.Headers, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	body, err := io.ReadAll(io.LimitReader(resp.Body, f.n.o.Body+1))
	if err != nil {
		return Response{}, f.requestError(ctx, f.target, err)
	}
	if int64(len(body)) > f.n.o.Body {
		return Response{}, core.Errorf(core.KindLimit, "egress", "the response of %s has more than %d bytes", f.target.Host, f.n.o.Body).
			WithHint("request less data, with a page, a filter or a Range header")
	}
	body = []byte(f.maskText(string(body)))
	if utf8.Valid(body) {
		answer.Text = string(body)
	} else {
		answer.Base64 = base64.StdEncoding.EncodeToString(body)
	}
	return answer, nil
}

func (s *Session) maskText(text string) string {
	if s.x.Mask == nil || text == "" {
		return text
	}
	return string(s.x.Mask([]byte(text)))
}

func statusText(resp *http.Response) string {
	_, text, _ := strings.Cut(resp.Status, " ")
	return strings.ToValidUTF8(text, "\uFFFD")
}

// redirectHeaders lists the headers of a program that are also sent to another origin after a redirect. All others
// are dropped, because they may be credentials for the first origin.
var redirectHeaders = []string{"Accept", "Accept-Language", "Content-Type", "Content-Language", "Range", "User-Agent"}

// redirectTo prepares the request to the location that a redirect names. It returns an error if that request is
// refused.
func (f *fetchRequest) redirectTo(status int, location string) *core.Error {
	from := f.url
	to, err := from.Parse(location)
	if err != nil {
		return f.noteRefusal(Target{Host: location}, policyErrorf("%s redirects to %s, which is not a valid URL", f.target.Host, quoteShort(location)))
	}
	u, t, refused := parseURL(to.String())
	if refused != nil {
		return f.noteRefusal(t, refused)
	}
	if from.Scheme != u.Scheme || from.Host != u.Host {
		if len(f.body) > 0 && status >= http.StatusTemporaryRedirect {
			return f.noteRefusal(t, policyErrorf("%s redirects to %s and wants the request body sent again; Retort does not send a body to another origin", f.target.Host, t.Host))
		}
		maps.DeleteFunc(f.header, func(name string, _ []string) bool { return !slices.Contains(redirectHeaders, name) })
	}
	if status == http.StatusSeeOther && f.method != http.MethodHead || status < http.StatusSeeOther && f.method == http.MethodPost {
		f.method, f.body = http.MethodGet, nil
		for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"} {
			f.header.Del(name)
		}
	}
	f.url, f.target = u, t
	return nil
}
