package export

import (
	"cmp"
	"strconv"
	"unicode"
	"unicode/utf8"

	"retort/internal/audit"
	"retort/internal/core"
)

// cef writes the Common Event Format, revision 0.1 of its form: CEF:0. Keys are those of its dictionary:
//
//	rt                        when, in milliseconds since 1970
//	externalId                CHAIN:SEQ
//	cat, act                  the kind of the entry, its effect
//	outcome, reason           success or failure, the status
//	suser                     the principal
//	requestClientApplication  the client
//	destinationServiceName    the server
//	in                        bytes of an answer
//	cs1 to cs6                tool, session, execution, hash, facts, body
//	cn1 to cn3                risk, duration in ms, tokens avoided
type cef struct {
	version string
	buf     []byte
}

// longest sets how many bytes the dictionary gives a custom text.
const longest = 4000

func (c *cef) line(e *audit.Entry) []byte {
	f := factsOf(e)
	c.buf = append(c.buf[:0], "CEF:0|Retort|Retort"...)
	for _, s := range []string{c.version, string(e.Kind), summary(e), strconv.Itoa(severity(e, &f))} {
		c.buf = header(append(c.buf, '|'), s)
	}
	c.buf = append(c.buf, "|rt="...)
	c.buf = strconv.AppendInt(c.buf, e.At.UnixMilli(), 10)
	c.add("externalId", placeOf(e))
	c.add("cat", string(e.Kind))
	c.add("act", f.Effect)
	if ok, known := succeeded(e); known {
		c.add("outcome", map[bool]string{true: "success", false: "failure"}[ok])
	}
	c.add("reason", e.Status)
	c.add("suser", cmp.Or(e.Principal, e.UserID))
	c.add("requestClientApplication", f.Client)
	c.add("destinationServiceName", e.Server)
	if e.Kind == core.EventCall || e.Kind == core.EventAnswer {
		c.add("in", strconv.FormatInt(e.Bytes, 10))
	}
	for i, s := range []struct{ label, value string }{{"tool", e.Tool}, {"session", e.Session}, {"execution", e.Execution}, {"hash", e.Hash}, {"facts", string(e.Facts)}, {"body", string(e.Body)}} {
		c.custom("cs"+strconv.Itoa(i+1), s.label, s.value)
	}
	if e.Risk != nil {
		c.custom("cn1", "risk", strconv.Itoa(*e.Risk))
	}
	if e.Millis > 0 {
		c.custom("cn2", "duration_ms", strconv.FormatInt(int64(e.Millis+.5), 10))
	}
	if e.Avoided > 0 {
		c.custom("cn3", "tokens_avoided", strconv.FormatInt(e.Avoided, 10))
	}
	c.buf = append(c.buf, '\n')
	return c.buf
}

// custom adds a field with the label that says what it is.
func (c *cef) custom(key, label, value string) {
	if value != "" {
		c.add(key+"Label", label)
		c.add(key, value)
	}
}

// add adds a field of the extension, unless it is empty.
func (c *cef) add(key, value string) {
	if value == "" {
		return
	}
	c.buf = append(append(append(c.buf, ' '), key...), '=')
	start := len(c.buf)
	for _, r := range value {
		switch {
		case len(c.buf)-start > longest-16:
			c.buf = append(c.buf, "…"...)
			return
		case r == '\n', r == '\r', r == '\u2028', r == '\u2029', r == '\u0085':
			c.buf = append(c.buf, `\n`...)
		case r == '\\', r == '=':
			c.buf = append(c.buf, '\\', byte(r))
		default:
			c.buf = utf8.AppendRune(c.buf, visible(r))
		}
	}
}

// header adds a field of the header: one line, without a bar.
func header(buf []byte, value string) []byte {
	for _, r := range value {
		switch {
		case r == '\\', r == '|':
			buf = append(buf, '\\', byte(r))
		case unicode.IsSpace(r), r == '\u2028', r == '\u2029':
			buf = append(buf, ' ')
		default:
			buf = utf8.AppendRune(buf, visible(r))
		}
	}
	return buf
}

// visible returns a character that a terminal or a log shows, or what stands for one.
func visible(r rune) rune {
	switch {
	case r >= ' ' && r < utf8.RuneSelf-1:
		return r
	case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069': // the latter turn text
		return utf8.RuneError
	}
	return r
}
