package paging

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"retort/internal/base/jsonscan"
	"retort/internal/core"
)

// maxCursor bounds the value that selects the next page, in bytes.
const maxCursor = 8 << 10

// Reader reads one list page by page. The zero value is not usable; use NewReader.
type Reader struct {
	tool   string // for messages
	inputs []Input
	method *Method
	next   []setting // of the next request
	pages  int       // that were read
	at     int64     // number of the page that was read last, or offset of its first item
	first  int64     // number of the first page, or offset of the first item
	count  int64     // of items that were read
	seen   map[[sha256.Size]byte]bool
}

// setting is a parameter with its value as JSON.
type setting struct {
	name  string
	value []byte
}

// NewReader returns a Reader for a tool with an input schema. The name of the tool is only used in messages.
func NewReader(tool string, schema json.RawMessage) *Reader {
	return &Reader{tool: tool, inputs: InputsOf(schema), seen: map[[sha256.Size]byte]bool{}}
}

// Arguments returns the arguments of the call for the next page: those of the program, with the parameter that selects
// the page. The arguments must be a JSON object.
func (r *Reader) Arguments(given json.RawMessage) json.RawMessage {
	if len(r.next) == 0 {
		return given
	}
	var b bytes.Buffer
	b.WriteByte('{')
	add := func(key, value []byte) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	for key, value := range jsonscan.Members(bytes.TrimSpace(given)) {
		name, _ := jsonscan.Unquote(string(key))
		if !slices.ContainsFunc(r.next, func(s setting) bool { return s.name == name }) {
			add(key, value)
		}
	}
	for _, s := range r.next {
		add(quote(s.name), s.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// ReadPage reads the answer to the call with Arguments. It returns the items as a JSON array, and whether there is
// another page. The argument given is the same as for Arguments. An error is about this tool as a whole: its answers
// cannot be read as pages, or they repeat.
func (r *Reader) ReadPage(given, answer json.RawMessage) (items json.RawMessage, more bool, refused *core.Error) {
	r.pages++
	if r.method == nil {
		m, problem := Recognize(r.inputs, ShapeOf(answer))
		if problem != "" {
			return nil, false, r.unreadable(answer, problem)
		}
		r.method = m
		r.beginAt(given, answer)
	}
	items = bytes.TrimSpace(lookup(answer, r.method.Items))
	if string(items) == "null" {
		items = json.RawMessage("[]")
	}
	if len(items) == 0 || items[0] != '[' {
		return nil, false, r.failure(
			"page %d of %s has another shape than page 1: it has no list %s", r.pages, r.tool, pathName(r.method.Items),
		)
	}
	n, last := int64(0), []byte(nil)
	for item := range jsonscan.Items(items) {
		n, last = n+1, item
	}
	r.count += n
	if n > 0 && r.isRepeated('i', items) {
		return nil, false, r.failure("%s returned the same items on page %d as on an earlier page", r.tool, r.pages)
	}
	next, refused := r.nextSettings(answer, n, last)
	if refused != nil || next == nil {
		return items, false, refused
	}
	return items, true, r.turnTo(next)
}

// beginAt notes where the first page lies.
func (r *Reader) beginAt(given, answer []byte) {
	m := r.method
	if m.Style == Page {
		r.first = 1
	}
	if m.param.first >= 0 {
		r.first = m.param.first
	}
	value := lookup(given, []string{m.param.Name})
	start, isGiven := parseNumber(value)
	if shown, ok := parseNumber(lookupField(answer, m.shown)); ok && !isGiven && shown <= 1 {
		r.first = shown // a larger number means something else
	}
	r.at = r.first
	if isGiven {
		r.at, r.first = start, min(r.first, start)
	}
	if value != nil && m.Style != Whole {
		r.isRepeated('r', requestKey([]setting{{m.param.Name, value}}))
	}
}

// turnTo makes next the settings of the next request, unless an earlier one had the same.
func (r *Reader) turnTo(next []setting) *core.Error {
	for _, s := range next {
		if len(s.value) > maxCursor {
			return r.failure(
				"%s returned a value of %d bytes for %s on page %d; at most %d are allowed",
				r.tool, len(s.value), showName(s.name), r.pages, maxCursor,
			)
		}
	}
	if r.isRepeated('r', requestKey(next)) {
		return r.failure(
			"%s does not advance: after page %d it gives the value of an earlier page for %s",
			r.tool, r.pages, showName(next[0].name),
		)
	}
	r.next = next
	return nil
}

func requestKey(settings []setting) []byte {
	var key []byte
	for _, s := range settings {
		key = append(append(append(key, quote(s.name)...), ':'), bytes.Trim(s.value, `"`)...)
	}
	return key
}

// isRepeated reports whether something of a kind was seen before, and remembers it.
func (r *Reader) isRepeated(kind byte, what []byte) bool {
	h := sha256.New()
	h.Write([]byte{kind})
	h.Write(what)
	key := [sha256.Size]byte(h.Sum(nil))
	repeated := r.seen[key]
	r.seen[key] = true
	return repeated
}

// nextSettings returns the parameters that select the page after an answer with n items, or nil if it was the last.
func (r *Reader) nextSettings(answer []byte, n int64, last []byte) ([]setting, *core.Error) {
	m := r.method
	more, told := r.saysMore(answer)
	if told && !more {
		return nil, nil
	}
	switch m.Style {
	case Next:
		return r.nextByValue(answer, more)
	case LastID:
		if n == 0 {
			return nil, r.unlessMore(answer, more)
		}
		return r.nextByID(last)
	case Page:
		return r.nextByPage(answer, n, more), nil
	case Offset:
		if n == 0 {
			return nil, r.unlessMore(answer, more)
		}
		if total, ok := parseNumber(lookupField(answer, m.total)); ok && r.at-r.first+n >= total && !more {
			return nil, nil
		}
		r.at += n
		return []setting{{m.param.Name, strconv.AppendInt(nil, r.at, 10)}}, nil
	}
	return nil, r.checkWhole(answer, more)
}

// saysMore returns what an answer says about further pages. told is false if it says nothing.
func (r *Reader) saysMore(answer []byte) (more, told bool) {
	switch string(lookupField(answer, r.method.more)) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	switch string(lookupField(answer, r.method.end)) {
	case "true":
		return false, true
	case "false":
		return true, true
	}
	return false, false
}

// unlessMore returns an error if an answer says that there are further pages, which cannot be selected.
func (r *Reader) unlessMore(answer []byte, more bool) *core.Error {
	if !more {
		return nil
	}
	if r.pages == 1 {
		return r.unreadable(answer, "its answer says that there is more, but not how to get it")
	}
	return r.failure("page %d of %s says that there is more, but not how to get it", r.pages, r.tool)
}

// checkWhole returns an error if an answer that should have everything shows that there is more.
func (r *Reader) checkWhole(answer []byte, more bool) *core.Error {
	m := r.method
	if more || m.next != nil { // a field such as next_cursor says itself that this is the last page
		return r.unlessMore(answer, more)
	}
	const others = "and no known parameter selects the others"
	if total, ok := parseNumber(lookupField(answer, m.total)); ok && total > r.count {
		return r.unreadable(answer, fmt.Sprintf("its answer has %d of %d items, %s", r.count, total, others))
	}
	if pages, ok := parseNumber(lookupField(answer, m.pages)); ok && pages > 1 {
		return r.unreadable(answer, fmt.Sprintf("its answer is one of %d pages, %s", pages, others))
	}
	for _, p := range placesOf(ShapeOf(answer), m.Items) {
		for i, f := range p.object.Members {
			isNext := strings.HasPrefix(p.folded[i], "next") && selectsNext(p.folded[i])
			if isNext && f.Shape.Kind&(String|Number) != 0 {
				return r.unreadable(answer, "no known parameter takes the value of "+showName(f.Name))
			}
		}
	}
	return nil
}

// nextByValue returns the settings from a field such as next_cursor.
func (r *Reader) nextByValue(answer []byte, more bool) ([]setting, *core.Error) {
	m := r.method
	value := bytes.TrimSpace(lookup(answer, m.next))
	switch {
	case len(value) == 0, string(value) == "null", string(value) == `""`, string(value) == "false":
		return nil, r.unlessMore(answer, more)
	case value[0] == '{', value[0] == '[', value[0] == 't':
		return nil, r.failure(
			"page %d of %s has another shape than expected: %s is no text or number", r.pages, r.tool, pathName(m.next),
		)
	case len(value) > maxCursor:
		return []setting{{m.param.Name, value}}, nil // turnTo refuses it
	}
	text, isText := jsonscan.Unquote(string(value))
	isLink := isText && strings.Contains(text, "://")
	if isText && (isLink || linkFields.has(foldName(lastOf(m.next)))) {
		if found := r.fromLink(text); found != nil {
			return found, nil
		}
	}
	if isLink && m.param.Kind&String == 0 {
		return nil, r.unreadable(answer, "the link in "+pathName(m.next)+" has none of its parameters")
	}
	return []setting{{m.param.Name, m.param.encode(value, text, isText)}}, nil
}

// fromLink returns the parameters in a link that select a page. No other parameter is taken from a link, so that a
// server cannot change what a program asked for.
func (r *Reader) fromLink(link string) []setting {
	u, err := url.Parse(link)
	if err != nil {
		return nil
	}
	var found []setting
	query := u.Query()
	for _, in := range r.inputs {
		folded := foldName(in.Name)
		numbered := pageParams.has(folded) || offsetParams.has(folded)
		if !selectsPage(folded) || otherParams.has(folded) || numbered && in.Kind&Number == 0 {
			continue
		}
		for _, name := range []string{in.Name, strings.ToLower(in.Name)} {
			if value := query.Get(name); value != "" {
				found = append(found, setting{in.Name, in.encode(quote(value), value, true)})
				break
			}
		}
	}
	return found
}

// encode returns a value as JSON of a type that the parameter takes.
func (in Input) encode(value []byte, text string, isText bool) []byte {
	switch {
	case isText && in.Kind&String == 0 && in.Kind&Number != 0 && jsonscan.IsNumber(text):
		return []byte(text)
	case !isText && in.Kind&Number == 0 && in.Kind&String != 0:
		return quote(string(value))
	}
	return value
}

func (r *Reader) nextByID(last []byte) ([]setting, *core.Error) {
	m := r.method
	id := bytes.TrimSpace(lookup(last, []string{m.id}))
	text, isText := jsonscan.Unquote(string(id))
	if !isText && !jsonscan.IsNumber(string(id)) {
		return nil, r.failure(
			"page %d of %s has another shape than page 1: its last item has no %s", r.pages, r.tool, showName(m.id),
		)
	}
	return []setting{{m.param.Name, m.param.encode(id, text, isText)}}, nil
}

func (r *Reader) nextByPage(answer []byte, n int64, more bool) []setting {
	m := r.method
	pages, isKnown := parseNumber(lookupField(answer, m.pages))
	total, isCounted := parseNumber(lookupField(answer, m.total))
	switch {
	case more:
	case isKnown && r.at-r.first+1 >= pages, !isKnown && isCounted && r.count >= total, !isKnown && n == 0:
		return nil
	}
	r.at++
	return []setting{{m.param.Name, strconv.AppendInt(nil, r.at, 10)}}
}

func lookupField(answer []byte, path []string) []byte {
	if path == nil {
		return nil
	}
	return bytes.TrimSpace(lookup(answer, path))
}

// parseNumber returns an integer that is not negative, written as a JSON number or as a text.
func parseNumber(value []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(bytes.Trim(value, `"`)), 10, 64)
	const most = 1 << 53
	return n, err == nil && n >= 0 && n <= most
}

func quote(text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		return []byte(`""`) // a string can always be encoded
	}
	return quoted
}

// failure returns the error for pages that are not what the first one promised.
func (r *Reader) failure(format string, args ...any) *core.Error {
	return core.Errorf(core.KindToolError, "paging", format+"; pages stopped", args...).
		WithHint("read %s by hand: call it in a loop and choose the next page yourself", r.tool)
}

// unreadable returns the error for an answer from which paging is not recognised.
func (r *Reader) unreadable(answer []byte, problem string) *core.Error {
	var arguments []string
	for _, in := range r.inputs {
		arguments = append(arguments, in.Name)
	}
	shape := ShapeOf(answer)
	seen := "the answer is no object"
	if names := shape.names(); len(names) > 0 {
		seen = "fields of the answer: " + listNames(names)
	}
	return core.Errorf(core.KindToolError, "paging", "pages cannot read %s: %s", r.tool, problem).WithHint(
		"read it by hand: call it in a loop and choose the next page yourself; arguments: %s; %s", listNames(arguments), seen,
	)
}

// Bounds on names in messages.
const (
	maxNames = 20
	maxName  = 40 // code points
)

func listNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	var shown []string
	for _, name := range names[:min(len(names), maxNames)] {
		shown = append(shown, showName(name))
	}
	if len(names) > maxNames {
		shown = append(shown, fmt.Sprintf("and %d more", len(names)-maxNames))
	}
	return strings.Join(shown, ", ")
}

func showName(name string) string {
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName]) + "…"
	}
	return core.EscapeIllegible(name)
}

func pathName(path []string) string { return showName(strings.Join(path, ".")) }
