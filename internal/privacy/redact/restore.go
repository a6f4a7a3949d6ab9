package redact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"retort/internal/base/jsonscan"
	"retort/internal/core"
	"retort/internal/privacy/pii"
	"retort/internal/privacy/vault"
)

// RestoreArguments replaces the tokens in the arguments of a call to a server by their values. It returns an error
// for a token that does not exist in this session. It also refuses a token inside an address, a host name or code,
// because the surrounding text could send the value elsewhere. crossings lists the values that came from other
// servers and that no rule allows this server to receive.
func (s *Session) RestoreArguments(server string, arguments json.RawMessage) (json.RawMessage, []BorderCrossing, *core.Error) {
	if !bytes.Contains(arguments, []byte("_")) || !bytes.Contains(arguments, []byte("[")) {
		return arguments, nil, nil
	}
	if err := s.tokens.RefreshTokens(); err != nil {
		return nil, nil, core.Errorf(core.KindInternal, "pii.restore", "the tokens of this session cannot be read: %w", err)
	}
	r := tokenRestorer{session: s, server: server, in: arguments}
	r.restoreStrings()
	if r.refused != nil {
		return nil, nil, r.refused
	}
	if r.from == 0 {
		return arguments, nil, nil
	}
	return append(r.out, arguments[r.from:]...), r.crossings, nil
}

// tokenRestorer replaces the tokens in the strings of one JSON document by values.
type tokenRestorer struct {
	session   *Session
	server    string
	in, out   []byte
	from      int    // up to which in is in out
	key       string // of the member that is looked at
	crossings []BorderCrossing
	refused   *core.Error
}

func (r *tokenRestorer) restoreStrings() {
	for i := 0; i < len(r.in) && r.refused == nil; i++ {
		if r.in[i] != '"' {
			continue
		}
		quote, _ := jsonscan.StringEnd(r.in, i+1)
		end := min(quote+1, len(r.in))
		next := bytes.TrimLeft(r.in[end:], " \t\r\n")
		isKey := len(next) > 0 && next[0] == ':'
		r.restoreString(i, end, isKey)
		if isKey {
			_ = json.Unmarshal(r.in[i:end], &r.key)
		}
		i = end - 1
	}
}

// restoreString replaces the tokens in one string.
func (r *tokenRestorer) restoreString(start, end int, isKey bool) {
	inner := r.in[start+1 : max(end-1, start+1)]
	for _, f := range r.session.screen.scanner.FindTokens(nil, inner) {
		token := string(inner[f.Start:f.End])
		e, ok := r.session.tokens.ResolveToken(token)
		if !ok {
			r.refused = core.Errorf(core.KindPolicy, "pii.restore", "%s cannot be used in this session: %w", token, ErrUnknown).
				WithHint("use tokens as they were returned; they are valid only in the session that created them")
			return
		}
		whole := len(token) == len(inner)
		if !whole && !isKey && !slices.Contains(e.From, modelSource) && r.canCarryAway(inner) {
			r.refused = core.Errorf(
				core.KindPolicy, "pii.restore",
				"%s is part of %q, which is an address, a host or code: the surrounding text could send the value elsewhere",
				token, r.key,
			).
				WithHint("pass the token alone, as the complete argument")
			return
		}
		if !whole && !isKey && !slices.Contains(e.From, modelSource) && !r.isProse() {
			r.crossings = append(r.crossings, BorderCrossing{Type: pii.Type(e.Type), Part: r.key})
		}
		r.recordCrossing(e)
		r.session.rememberSent(e)
		r.writeValue(start+1+f.Start, start+1+f.End, e, whole && !isKey)
	}
}

// recordCrossing records that a value is about to be sent to a server that it did not come from. Values that the
// model wrote itself, and values that a rule reveals to the server, are not recorded.
func (r *tokenRestorer) recordCrossing(e vault.TokenEntry) {
	t := pii.Type(e.Type)
	if slices.Contains(e.From, r.server) || slices.Contains(e.From, modelSource) || slices.Equal(e.From, []string{programSource}) {
		return // a model that knows a value can send it anywhere
	}
	if r.session.screen.reveals != nil && r.session.screen.reveals(r.server, t) {
		return
	}
	from := slices.DeleteFunc(slices.Clone(e.From), func(s string) bool { return s == programSource })
	r.crossings = append(r.crossings, BorderCrossing{Type: t, From: from})
}

// rememberSent remembers a value that a server receives, so that it is found if the server repeats it in a text. Values
// of types with a form of their own are found anyway.
func (s *Session) rememberSent(e vault.TokenEntry) {
	switch t := pii.Type(e.Type); t {
	case pii.Email, pii.IP, pii.MAC, pii.IBAN:
	default:
		if s.screen.modes[t] == Sealed {
			s.known.AddSealed(t, e.Value)
		}
	}
}

// writeValue writes the value of a token. A value that was a JSON number in a server's result becomes a number again.
func (r *tokenRestorer) writeValue(start, end int, e vault.TokenEntry, whole bool) {
	text, err := json.Marshal(e.Value)
	if err != nil {
		r.refused = core.Errorf(core.KindInternal, "pii.restore", "%w", err)
		return
	}
	value := text[1 : len(text)-1]
	if e.Digits && whole {
		start, end, value = start-1, end+1, []byte(e.Value)
	}
	r.out = append(append(r.out, r.in[r.from:start]...), value...)
	r.from = end
}

// carriers lists words in argument names which suggest that the receiver interprets the text, for example as a URL, a
// host name or code.
var carriers = []string{
	"url", "uri", "href", "link", "endpoint", "webhook", "host", "hostname", "domain", "code", "script", "command",
	"cmd", "sql", "expression", "log", "statement", "soql", "jql", "cypher", "graphql", "template", "formula",
	"regex", "website", "proxy",
}

// proseWords lists words in argument names which say that the argument is prose for people to read.
var proseWords = []string{
	"body", "text", "message", "content", "contents", "description", "comment", "comments", "note", "notes", "subject", "title", "summary",
	"html", "markdown", "caption", "reply", "prompt", "remark", "remarks", "details", "greeting", "question", "answer",
	"reason", "headline", "paragraph", "instructions", "plain",
}

// isProse reports whether the argument that contains a token is prose, judged by its name.
func (r *tokenRestorer) isProse() bool {
	return slices.ContainsFunc(splitName(r.key), func(word string) bool { return slices.Contains(proseWords, word) })
}

// addressLike matches a text in which a token may be a part of an address or a host: after a scheme, after slashes,
// next to a dot between letters, or as a parameter.
var addressLike = regexp.MustCompile(
	`(?i)://|(?:^|[\s"'(<=])(?:\\?/){2}\w|\b(?:mailto|tel|sms|data|javascript|file):\S*\[[A-Z_]+_\d+\]|[/?&=@%][^\s"']*\[[A-Z_]+_\d+\]|` +
		`[\w-]\.\[[A-Z_]+_\d+\]|\[[A-Z_]+_\d+\](?:[\w-]*\.[\w-]|[/@%])`,
)

// codeLike matches a text that calls a function with a token, or compares something with one. A server could compute
// with the value, and answer something from which it can be learned.
var codeLike = regexp.MustCompile(
	`\w\([^()]*\[[A-Z_]+_\d+\]|(?i:\b(?:select|insert|update|delete|where|having)\b).*\[(?-i:[A-Z_]+_\d+)\]|[=<>]\s*\\?["']?\[[A-Z_]+_\d+\]`,
)

// canCarryAway reports whether the text around a token, or the name of the argument that contains it, suggests that
// the value could be sent elsewhere. An example is a URL.
func (r *tokenRestorer) canCarryAway(text []byte) bool {
	if addressLike.Match(text) || codeLike.Match(text) {
		return true
	}
	for _, word := range splitName(r.key) {
		if slices.Contains(carriers, word) {
			return true
		}
	}
	return false
}

// splitName splits an argument name into its lower-case words: callback_url and callbackUrl both become "callback"
// and "url".
func splitName(name string) []string {
	var b strings.Builder
	for i, c := range name {
		if 'A' <= c && c <= 'Z' && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return strings.FieldsFunc(strings.ToLower(b.String()), func(c rune) bool { return c == ' ' || c == '_' || c == '-' || c == '.' })
}
