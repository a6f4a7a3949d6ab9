package redact

import (
	"bytes"
	"encoding/json"
	"slices"

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
	return s.RestoreBySchema(server, arguments, nil)
}

// RestoreBySchema works like RestoreArguments, but also considers the input schema of the tool. It refuses a token
// inside a longer argument that is an address, a host or a pattern by its schema. schema may be nil.
func (s *Session) RestoreBySchema(
	server string, arguments, schema json.RawMessage,
) (json.RawMessage, []BorderCrossing, *core.Error) {
	if !bytes.Contains(arguments, []byte("_")) || !bytes.Contains(arguments, []byte("[")) {
		return arguments, nil, nil
	}
	if err := s.tokens.RefreshTokens(); err != nil {
		return nil, nil, core.Errorf(core.KindInternal, "pii.restore", "the tokens of this session cannot be read: %w", err)
	}
	r := tokenRestorer{session: s, server: server, in: arguments, schema: schema}
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
	from      int // offset in in up to which out is complete
	path      argumentPath
	schema    json.RawMessage // schema of the arguments; may be nil
	formats   *inputSchema    // the parsed schema; nil until it is needed
	crossings []BorderCrossing
	refused   *core.Error
}

func (r *tokenRestorer) restoreStrings() {
	for i := 0; i < len(r.in) && r.refused == nil; i++ {
		switch r.in[i] {
		case '{', '[':
			r.path.open(r.in[i] == '[')
		case '}', ']':
			r.path.close()
		case ',':
			r.path.next()
		case '"':
			quote, _ := jsonscan.StringEnd(r.in, i+1)
			end := min(quote+1, len(r.in))
			next := bytes.TrimLeft(r.in[end:], " \t\r\n")
			isKey := len(next) > 0 && next[0] == ':'
			r.restoreString(i, end, isKey)
			if isKey {
				var key string
				_ = json.Unmarshal(r.in[i:end], &key)
				r.path.setKey(key)
			}
			i = end - 1
		}
	}
}

// restoreString replaces the tokens in one string.
func (r *tokenRestorer) restoreString(start, end int, isKey bool) {
	inner := r.in[start+1 : max(end-1, start+1)]
	tokens := r.session.screen.scanner.FindTokens(nil, inner)
	if len(tokens) == 0 {
		return
	}
	entries := make([]vault.TokenEntry, len(tokens))
	for i, f := range tokens {
		token, ok := string(inner[f.Start:f.End]), false
		if entries[i], ok = r.session.tokens.ResolveToken(token); !ok {
			r.refused = core.Errorf(core.KindPolicy, "pii.restore", "%s cannot be used in this session: %w", token, ErrUnknown).
				WithHint("use tokens as they were returned; they are valid only in the session that created them")
			return
		}
	}
	whole := len(tokens) == 1 && tokens[0].End-tokens[0].Start == len(inner)
	if !whole && !r.checkSurroundings(inner, tokens, entries, isKey) {
		return
	}
	for i, f := range tokens {
		r.recordCrossing(entries[i])
		r.session.rememberSealed(pii.Type(entries[i].Type), entries[i].Value)
		r.writeValue(start+1+f.Start, start+1+f.End, entries[i], whole && !isKey)
	}
}

// checkSurroundings reports whether values may replace the tokens inside a longer text. It sets r.refused if the text
// could send the values elsewhere. If it is not known what kind of text it is, it records crossings, so that a person
// is asked. isKey is true if the text is a key of an object.
func (r *tokenRestorer) checkSurroundings(
	inner []byte, tokens []pii.TypedSpan, entries []vault.TokenEntry, isKey bool,
) bool {
	by := unknown
	switch {
	case isKey:
	case r.isCarrier():
		by = carrier
	default:
		by = ofName(r.path.name())
	}
	switch judgeText(by, inner, tokens, entries) {
	case carrier:
		r.refused = core.Errorf(
			core.KindPolicy, "pii.restore",
			"%s is part of a longer text that is an address, a host or code: the surrounding text could send the value "+
				"elsewhere",
			inner[tokens[0].Start:tokens[0].End],
		).WithHint("pass the token alone, as the complete argument")
		return false
	case unknown:
		for _, e := range entries {
			if !slices.Contains(e.From, modelSource) && !r.session.screen.isRevealed(r.server, pii.Type(e.Type)) {
				r.crossings = addCrossing(r.crossings, BorderCrossing{Type: pii.Type(e.Type), Inside: true})
			}
		}
	}
	return true
}

// isCarrier reports whether the schema says that the receiver interprets the current argument, for example as a URL.
func (r *tokenRestorer) isCarrier() bool {
	if r.formats == nil {
		formats := readSchema(r.schema)
		r.formats = &formats
	}
	return r.formats.isCarrier(r.path)
}

// isRevealed reports whether a rule lets a server receive values of a type that did not come from the server.
func (s *Redactor) isRevealed(server string, t pii.Type) bool {
	return s.reveals != nil && s.reveals(server, t)
}

// recordCrossing records that a value is about to be sent to a server that it did not come from. Values that the
// model wrote itself, and values that a rule reveals to the server, are not recorded.
func (r *tokenRestorer) recordCrossing(e vault.TokenEntry) {
	t := pii.Type(e.Type)
	if slices.Contains(e.From, r.server) || slices.Contains(e.From, modelSource) || slices.Equal(e.From, []string{programSource}) {
		return // a model that knows a value can send it anywhere
	}
	if r.session.screen.isRevealed(r.server, t) {
		return
	}
	from := slices.DeleteFunc(slices.Clone(e.From), func(s string) bool { return s == programSource })
	r.crossings = addCrossing(r.crossings, BorderCrossing{Type: t, From: from})
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
