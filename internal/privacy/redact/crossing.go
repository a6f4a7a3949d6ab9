package redact

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"retort/internal/privacy/pii"
)

// typeOrigins records which servers have sent values of each type. It answers for a value that is a part of another
// one, such as a first name, because only complete values are stored with the servers that they came from.
type typeOrigins struct {
	mu      sync.Mutex
	servers map[pii.Type]map[string]bool
}

func (o *typeOrigins) add(t pii.Type, servers []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, server := range servers {
		if server == programSource || server == modelSource {
			continue
		}
		if o.servers == nil {
			o.servers = map[pii.Type]map[string]bool{}
		}
		if o.servers[t] == nil {
			o.servers[t] = map[string]bool{}
		}
		o.servers[t][server] = true
	}
}

func (o *typeOrigins) of(t pii.Type) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.servers[t]))
}

// FindCrossings returns the values in a call's arguments that programs see, that other servers have sent and that no
// rule allows this server to receive. It does not return values for which isSpoken reports that the model wrote them.
func (s *Session) FindCrossings(server string, arguments json.RawMessage, isSpoken func(value string) bool) (crossings []BorderCrossing) {
	for _, text := range argumentTexts(arguments) {
		for _, f := range s.screen.scanner.FindKnown(nil, s.known, []byte(text)) {
			if s.screen.modes[f.Type] != Border || s.screen.reveals != nil && s.screen.reveals(server, f.Type) {
				continue
			}
			value := text[f.Start:f.End]
			if from := s.originsOf(f.Type, value, server); len(from) > 0 && !isSpoken(value) {
				crossings = append(crossings, BorderCrossing{Type: f.Type, From: from})
			}
		}
	}
	return crossings
}

// originsOf returns the servers that have sent a value, or values of its type if it is only a part of one. It returns
// none if the given server has sent the value itself.
func (s *Session) originsOf(t pii.Type, value, server string) []string {
	if e, ok := s.tokens.FindValue(string(t), value); ok {
		from := slices.DeleteFunc(slices.Clone(e.From), func(name string) bool { return name == programSource || name == modelSource })
		if slices.Contains(from, server) {
			return nil
		}
		if len(from) > 0 {
			return from
		}
	}
	return slices.DeleteFunc(s.origins.of(t), func(name string) bool { return name == server })
}

// argumentTexts returns the strings and numbers of a JSON document, and the keys of its objects.
func argumentTexts(document json.RawMessage) (texts []string) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return texts
		}
		switch t := token.(type) {
		case string:
			texts = append(texts, t)
			if inner := strings.TrimSpace(t); len(inner) > 1 && (inner[0] == '{' || inner[0] == '[') && json.Valid([]byte(inner)) {
				texts = append(texts, argumentTexts(json.RawMessage(inner))...)
			}
		case json.Number:
			texts = append(texts, t.String())
		}
	}
}
