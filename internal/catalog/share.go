package catalog

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"retort/internal/catalog/infer"
	"retort/internal/core"
)

// learnedMember is the member of a tool definition in a file that holds the learned result type of the tool. It is
// not named outputSchema, because the server does not promise this type.
const learnedMember = "learnedOutput"

// learnedOutput is the value of learnedMember. Pin is the hash of the definition from whose results the type was
// learned.
type learnedOutput struct {
	Pin     string             `json:"pin"`
	Answers int                `json:"answers"`
	Steady  int                `json:"steady"`
	Shape   *infer.AnswerShape `json:"shape"`
}

// sharedTool is a tool with the result type that was learned with another data directory.
type sharedTool struct {
	server, name, pin string
	sharedShape
}

// readShared returns the result type that a file states for the tool in its definition. The shape is nil if the
// file states none. If that part of the file is unusable, note says so.
func readShared(t *core.Tool, definition []byte) (shared sharedTool, note string) {
	value, ok := parseJSON(definition, 1).findMember(learnedMember)
	if !ok {
		return shared, ""
	}
	var l learnedOutput
	const most = 1 << 30
	isValid := json.Unmarshal(value.raw, &l) == nil && l.Shape != nil
	if !isValid || l.Answers < 1 || l.Answers > most || l.Steady < 0 || l.Steady > l.Answers {
		return shared, "its " + learnedMember + " is unusable and is left out"
	}
	return sharedTool{t.Server, t.Name, l.Pin, sharedShape{l.Shape, l.Shape.JSONSchema(), l.Answers, l.Steady}}, ""
}

// shareShapes replaces the result types that come from files. A type applies to a tool whose definition has the
// same pin (hash), unless a result here has differed from the type.
func (l *shapeLearner) shareShapes(all []sharedTool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, tools := range l.servers {
		for _, k := range tools {
			if k.shared != nil {
				k.shared = nil
				l.publishShape(k)
			}
		}
	}
	for _, s := range all {
		k := l.servers[s.server][s.name]
		if k == nil && len(l.servers[s.server]) < maxLearned {
			k = &learnedTool{pin: s.pin}
			l.storeLearned(s.server, s.name, k)
		}
		if k == nil || k.pin != s.pin || !s.covers(k.shape) {
			continue
		}
		k.shared = &s.sharedShape
		l.publishShape(k)
	}
}

// ExportDefinitions returns files with the definitions of all tools, in the form that LoadStatic reads. It maps
// the path <category>/<server>.<tool>.json, with slashes, to the content. A file has the definition as the server
// sent it, the server's name and, if the tool declares no result type, the learned one. ExportDefinitions omits
// definitions that come from such files, and those that are withheld from models.
func (c *Catalog) ExportDefinitions() map[string][]byte {
	files := map[string][]byte{}
	for _, s := range c.Toolset().WithHidden().Servers {
		for _, t := range s.Tools {
			if s.Static || t.Withheld != "" || len(t.Raw) == 0 {
				continue
			}
			name := strings.TrimSuffix(fileName(s.Name+"."+t.Name), toolsSuffix) + ".json"
			files[path.Join(plainName(t.Category), name)] = c.exportTool(t)
		}
	}
	return files
}

// exportTool returns the definition of a tool as a file of its own.
func (c *Catalog) exportTool(t *core.Tool) []byte {
	members := parseJSON(t.Raw, 1)
	var b bytes.Buffer
	b.WriteString(`{"server":`)
	b.Write(appendString(nil, t.Server))
	for i, key := range members.keys {
		if name, ok := unquoteJSON(key); !ok || name == "server" || name == learnedMember {
			continue
		}
		b.WriteByte(',')
		b.Write(key)
		b.WriteByte(':')
		b.Write(members.items[i].raw)
	}
	if l := c.learner.exported(t); l != nil {
		if text, err := json.Marshal(l); err == nil {
			b.WriteString(`,"` + learnedMember + `":`)
			b.Write(text)
		}
	}
	b.WriteByte('}')
	var indented bytes.Buffer
	if json.Indent(&indented, b.Bytes(), "", "  ") != nil {
		return append(b.Bytes(), '\n')
	}
	return append(indented.Bytes(), '\n')
}

// exported returns the learned result type of a tool for export, or nil.
func (l *shapeLearner) exported(t *core.Tool) *learnedOutput {
	if l == nil || len(t.OutputSchema) > 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.servers[t.Server][t.Name]
	if k == nil || k.pin != t.Pin || k.published == nil {
		return nil
	}
	out := &learnedOutput{Pin: k.pin, Answers: k.count, Steady: k.steady, Shape: k.shape}
	if s := k.shared; s != nil {
		out.Answers, out.Steady, out.Shape = s.answers+k.count, s.steady+k.count, s.shape
	}
	return out
}

// plainName converts a name to the name of a folder, without characters that file systems refuse.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	if strings.Trim(plain, "-_") == "" {
		return "other"
	}
	return plain
}
