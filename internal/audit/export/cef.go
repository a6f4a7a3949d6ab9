package export

import (
	"cmp"
	"strconv"
	"unicode"
	"unicode/utf8"

	"retort/internal/audit"
	"retort/internal/core"
)

// cefWriter formats entries in the Common Event Format, version CEF:0. It uses these keys of the CEF dictionary:
//
//	rt                        time, in milliseconds since 1970
//	externalId                CHAIN:SEQ
//	cat, act                  the kind of the entry, its effect
//	outcome, reason           success or failure, the status
//	suser                     the principal
//	requestClientApplication  the client
//	destinationServiceName    the server
//	in                        size of a response in bytes
//	cs1 to cs6                tool, session, execution, hash, facts, body
//	cn1 to cn3                risk, duration in ms, tokens avoided
type cefWriter struct {
	version string
	buf     []byte
}

// maxFieldLength bounds a custom text field, in bytes, as the CEF dictionary demands.
const maxFieldLength = 4000

func (c *cefWriter) encodeLine(e *audit.Entry) []byte {
	f := factsOf(e)
	c.buf = append(c.buf[:0], "CEF:0|Retort|Retort"...)
	for _, s := range []string{c.version, string(e.Kind), summaryOf(e), strconv.Itoa(severityOf(e, &f))} {
		c.buf = appendHeader(append(c.buf, '|'), s)
	}
	c.buf = append(c.buf, "|rt="...)
	c.buf = strconv.AppendInt(c.buf, e.At.UnixMilli(), 10)
	c.addField("externalId", placeOf(e))
	c.addField("cat", string(e.Kind))
	c.addField("act", f.Effect)
	if ok, known := hasSucceeded(e); known {
		c.addField("outcome", map[bool]string{true: "success", false: "failure"}[ok])
	}
	c.addField("reason", e.Status)
	c.addField("suser", cmp.Or(e.Principal, e.UserID))
	c.addField("requestClientApplication", f.Client)
	c.addField("destinationServiceName", e.Server)
	if e.Kind == core.EventCall || e.Kind == core.EventAnswer {
		c.addField("in", strconv.FormatInt(e.Bytes, 10))
	}
	for i, s := range []struct{ label, value string }{
		{"tool", e.Tool}, {"session", e.Session}, {"execution", e.Execution}, {"hash", e.Hash},
		{"facts", string(e.Facts)}, {"body", string(e.Body)},
	} {
		c.addCustom("cs"+strconv.Itoa(i+1), s.label, s.value)
	}
	if e.Risk != nil {
		c.addCustom("cn1", "risk", strconv.Itoa(*e.Risk))
	}
	if e.Millis > 0 {
		c.addCustom("cn2", "duration_ms", strconv.FormatInt(int64(e.Millis+.5), 10))
	}
	if e.Avoided > 0 {
		c.addCustom("cn3", "tokens_avoided", strconv.FormatInt(e.Avoided, 10))
	}
	c.buf = append(c.buf, '\n')
	return c.buf
}

// addCustom adds a custom field together with its label. It adds nothing if the value is empty.
func (c *cefWriter) addCustom(key, label, value string) {
	if value != "" {
		c.addField(key+"Label", label)
		c.addField(key, value)
	}
}

// addField adds a field to the extension, the part of a CEF line after the header. It adds nothing if the value is
// empty.
func (c *cefWriter) addField(key, value string) {
	if value == "" {
		return
	}
	c.buf = append(append(append(c.buf, ' '), key...), '=')
	start := len(c.buf)
	for _, r := range value {
		switch {
		case len(c.buf)-start > maxFieldLength-16:
			c.buf = append(c.buf, "…"...)
			return
		case r == '\n', r == '\r', r == '\u2028', r == '\u2029', r == '\u0085':
			c.buf = append(c.buf, `\n`...)
		case r == '\\', r == '=':
			c.buf = append(c.buf, '\\', byte(r))
		default:
			c.buf = utf8.AppendRune(c.buf, visibleRune(r))
		}
	}
}

// appendHeader appends a field of the header, in one line and with vertical bars escaped.
func appendHeader(buf []byte, value string) []byte {
	for _, r := range value {
		switch {
		case r == '\\', r == '|':
			buf = append(buf, '\\', byte(r))
		case unicode.IsSpace(r), r == '\u2028', r == '\u2029':
			buf = append(buf, ' ')
		default:
			buf = utf8.AppendRune(buf, visibleRune(r))
		}
	}
	return buf
}

// visibleRune returns r, or U+FFFD if r is a control character or reverses the direction of text.
func visibleRune(r rune) rune {
	switch {
	case r >= ' ' && r < utf8.RuneSelf-1:
		return r
	case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069': // the latter turn text
		return utf8.RuneError
	}
	return r
}
