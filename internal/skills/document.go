package skills

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"retort/internal/agent/templates"
	"retort/internal/core"
)

// SkillDocument holds the content of SKILL.md.
type SkillDocument struct {
	Description string
	Tags        []string
	Triggers    []string // words and phrases of questions that the skill answers; used only for search
	// Tools maps each tool that the code calls, written server.tool with the raw names, to the pin (hash) that its
	// definition had when the skill was saved. The pin is "" if it is unknown.
	Tools     map[string]string
	Functions []SkillFunction // functions that the code exports, with their parameters
	Usage     string          // text below the front matter, as readers see it
	Body      string          // text below the front matter, as it is in the file; generated if empty
	Fields    string          // front matter fields that Retort does not write, as YAML
}

// SkillFunction describes a function of a skill. SKILL.md has the same information.
type SkillFunction struct {
	Name       string
	Signature  string          // signature in the skill's language; "" if only the front matter was read
	Doc        string          // documentation of the function; may be ""
	Parameters json.RawMessage // JSON Schema of an object whose members are in the order of the parameters
	Whole      bool            // whether the function takes one object that has the members in Parameters
}

// frontMatter holds the YAML front matter of SKILL.md. The fields name and description belong to the Agent Skills
// format, which other programs read too. The other fields are Retort's own. In an exported skill they are below the
// field metadata.
type frontMatter struct {
	Name        string         `yaml:"name"`
	Description string         `yaml:"description"`
	Tags        any            `yaml:"tags"`
	Triggers    any            `yaml:"triggers"`
	Language    string         `yaml:"language"`
	Tools       any            `yaml:"tools"`
	Parameters  map[string]any `yaml:"parameters"`
	Metadata    map[string]any `yaml:"metadata"`
}

const frontMatterFence = "---\n"

// parseDocument parses SKILL.md. If there is no front matter, the whole text describes how to use the skill.
func parseDocument(text string) (SkillDocument, error) {
	front, body, err := splitDocument(text)
	if err != nil {
		return SkillDocument{}, err
	}
	if front == "" && body == strings.TrimPrefix(text, "\ufeff") {
		return SkillDocument{Usage: readableBody(body), Body: body}, nil
	}
	m, raw, err := parseMatter(front)
	if err != nil {
		return SkillDocument{}, err
	}
	d := m.toDocument(body)
	d.Fields = personalFields(front, raw)
	return d, nil
}

// Bounds on front matter, which also keep the YAML parser fast.
const (
	maxTokens  = 4000
	maxNesting = 24
	maxTags    = 32
	maxWord    = 200 // maximum length of a tag or tool name, in bytes
)

// parseMatter parses the YAML front matter of SKILL.md. The result m holds the fields that Retort knows. The result
// raw holds all fields, including those that a person has added.
func parseMatter(front string) (m frontMatter, raw map[string]any, err error) {
	defer func() {
		if r := recover(); r != nil { // the parser panics on a few malformed inputs
			err = errors.New("the front matter is not YAML")
		}
	}()
	tokens := lexer.Tokenize(front)
	if err := checkTokens(tokens); err != nil {
		return m, nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return m, nil, fmt.Errorf("the front matter is not YAML: %s", strings.SplitN(yaml.FormatError(err, false, false), "\n", 2)[0])
	}
	if len(file.Docs) > 1 {
		return m, nil, errors.New("the front matter has more than one document")
	}
	if err := yaml.NodeToValue(file.Docs[0].Body, &raw); err != nil {
		return m, nil, errors.New("the front matter is not a list of keys and values")
	}
	if err := yaml.NodeToValue(file.Docs[0].Body, &m); err != nil {
		return m, nil, fmt.Errorf(
			"a value in the front matter has the wrong type: %s",
			strings.SplitN(yaml.FormatError(err, false, false), "\n", 2)[0],
		)
	}
	return m, raw, nil
}

// checkTokens returns an error if front matter uses YAML features that it does not need. It also returns an error if
// the front matter is so large or so nested that parsing it would be slow.
func checkTokens(tokens token.Tokens) error {
	if len(tokens) > maxTokens {
		return errors.New("the front matter is too long")
	}
	open, prefixes, line, deepest := 0, 0, 0, 0
	for _, t := range tokens {
		if t.Position != nil && t.Position.Line != line {
			line, prefixes = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
			return errors.New("the front matter contains anchors or tags, which are not supported")
		case token.MappingStartType, token.SequenceStartType:
			open++
		case token.MappingEndType, token.SequenceEndType:
			open--
		case token.SequenceEntryType, token.MappingKeyType:
			prefixes++
		case token.MappingValueType:
			if t.Position != nil {
				deepest = max(deepest, t.Position.IndentNum)
			}
		}
		if open > maxNesting || prefixes > maxNesting || deepest > 8*maxNesting {
			return errors.New("the front matter is too deeply nested")
		}
	}
	return nil
}

func (m frontMatter) toDocument(body string) SkillDocument {
	d := SkillDocument{
		Description: strings.TrimSpace(m.Description), Tags: wordsOf(m.Tags), Tools: map[string]string{},
		Usage: readableBody(body), Body: body,
	}
	if len(d.Tags) == 0 {
		d.Tags = wordsOf(m.Metadata["tags"])
	}
	d.Triggers = phrasesOf(m.Triggers)
	if len(d.Triggers) == 0 {
		d.Triggers = phrasesOf(m.Metadata["triggers"])
	}
	switch tools := m.Tools.(type) {
	case map[string]any:
		for name, pin := range tools {
			if len(name) <= maxWord && len(d.Tools) < maxTools {
				d.Tools[name] = fmt.Sprint(pin)
			}
		}
	default:
		for _, name := range append(wordsOf(m.Tools), wordsOf(m.Metadata["tools"])...) {
			name, pin, _ := strings.Cut(name, "@")
			d.Tools[name] = pin
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Parameters)) {
		if schema, err := json.Marshal(m.Parameters[name]); err == nil && len(name) <= maxWord {
			d.Functions = append(d.Functions, SkillFunction{Name: name, Parameters: schema})
		}
	}
	return d
}

const maxTools = 500

// wordsOf returns the items of a YAML list, or of a text in which blanks or commas separate them.
func wordsOf(v any) []string {
	var words []string
	switch v := v.(type) {
	case string:
		words = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	case []any:
		for _, item := range v {
			words = append(words, strings.TrimSpace(fmt.Sprint(item)))
		}
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" || len(w) > maxWord })
	return words[:min(len(words), maxTools)]
}

// phrasesOf returns the items of a YAML list, or of a text in which commas separate them.
func phrasesOf(v any) []string {
	if text, ok := v.(string); ok {
		var list []any
		for phrase := range strings.SplitSeq(text, ",") {
			list = append(list, phrase)
		}
		v = list
	}
	phrases := wordsOf(v)
	return phrases[:min(len(phrases), maxTags)]
}

// renderMarkdown returns the text of SKILL.md. The function words renders the part below the front matter. Equal
// documents give equal texts.
func (d SkillDocument) renderMarkdown(s core.Skill, words DocumentRenderer) (string, error) {
	tags := slices.Compact(slices.Sorted(slices.Values(d.Tags)))
	if len(tags) > maxTags {
		return "", core.Errorf(core.KindInvalidArguments, "skills", "the skill has %d tags; at most %d are allowed", len(tags), maxTags)
	}
	fields := yaml.MapSlice{{Key: "name", Value: s.Name}, {Key: "description", Value: d.Description}}
	if len(tags) > 0 {
		fields = append(fields, yaml.MapItem{Key: "tags", Value: tags})
	}
	if triggers := slices.Compact(slices.Sorted(slices.Values(d.Triggers))); len(triggers) > 0 {
		fields = append(fields, yaml.MapItem{Key: "triggers", Value: triggers})
	}
	if s.Language != "" {
		fields = append(fields, yaml.MapItem{Key: "language", Value: string(s.Language)})
	}
	if len(d.Tools) > 0 {
		tools := yaml.MapSlice{}
		for _, name := range slices.Sorted(maps.Keys(d.Tools)) {
			tools = append(tools, yaml.MapItem{Key: name, Value: d.Tools[name]})
		}
		fields = append(fields, yaml.MapItem{Key: "tools", Value: tools})
	}
	front, err := yaml.Marshal(fields)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	b.WriteString(frontMatterFence)
	b.Write(front)
	d.writeParameters(&b)
	b.WriteString(d.Fields + frontMatterFence)
	if s.Language == "" { // instructions, which are the text itself
		b.WriteString(endBody(cmp.Or(d.Body, "\n"+d.Usage+"\n")))
		return b.String(), nil
	}
	body, refused := words.Render(templates.Skill, d.templateData(s))
	if refused != nil {
		return "", refused
	}
	b.WriteString(d.renderBody(body))
	return b.String(), nil
}

// writeParameters writes the functions' parameter schemas as JSON, which is also valid YAML. It keeps the order of
// their members.
func (d SkillDocument) writeParameters(b *bytes.Buffer) {
	lead := "parameters:\n"
	for _, f := range d.Functions {
		if len(f.Parameters) == 0 {
			continue
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			continue
		}
		fmt.Fprintf(b, "%s  %s: %s\n", lead, name, f.Parameters)
		lead = ""
	}
}

// templateData returns the data for the template that renders SKILL.md.
func (d SkillDocument) templateData(s core.Skill) templates.SkillData {
	t := templates.SkillData{
		Name: s.Name, Description: strings.TrimSpace(d.Description), Language: "ts", Use: ImportLine(s, d.Functions),
		Example:   d.exampleArguments(),
		Functions: []templates.FunctionData{}, Tools: slices.Sorted(maps.Keys(d.Tools)),
	}
	if s.Language == core.Python {
		t.Language = "python"
	}
	for _, f := range d.Functions {
		t.Functions = append(t.Functions, templates.FunctionData{
			Signature: strings.ReplaceAll(strings.Join(strings.Fields(f.Signature), " "), "`", "'"), Doc: f.Doc,
		})
	}
	return t
}

// ImportLine returns the import statement with which a program imports all functions of a skill.
func ImportLine(s core.Skill, functions []SkillFunction) string {
	if s.Language == "" {
		return "read it with load_skill"
	}
	var names []string
	for _, f := range functions {
		names = append(names, f.Name)
	}
	if s.Language == core.Python {
		if len(names) == 0 {
			return "from skills import " + core.SkillIdentifier(s.Name, core.Python)
		}
		return "from skills." + core.SkillIdentifier(s.Name, core.Python) + " import " + strings.Join(names, ", ")
	}
	var clauses []string
	for i, name := range names {
		if name == "default" {
			clauses = append([]string{core.SkillIdentifier(s.Name, core.TypeScript)}, clauses...)
			names = slices.Delete(slices.Clone(names), i, i+1)
			break
		}
	}
	if len(names) == 0 && len(clauses) == 0 {
		clauses = append(clauses, "* as "+core.SkillIdentifier(s.Name, core.TypeScript))
	}
	if len(names) > 0 {
		clauses = append(clauses, "{ "+strings.Join(names, ", ")+" }")
	}
	return "import " + strings.Join(clauses, ", ") + " from './skills/" + s.Name + "';"
}

// exampleArguments returns command line arguments for an example call of the skill's first function.
func (d SkillDocument) exampleArguments() string {
	if len(d.Functions) == 0 {
		return ""
	}
	var schema struct{ Required []string }
	_ = json.Unmarshal(d.Functions[0].Parameters, &schema) // without it, the example has no arguments
	text := ""
	if len(d.Functions) > 1 {
		text = " " + d.Functions[0].Name
	}
	for _, name := range schema.Required {
		text += " --arg " + name + "=…"
	}
	return text
}

// ParamNames returns the names of a function's parameters, in the order of their schema.
func ParamNames(f SkillFunction) (names []string) {
	var s struct{ Properties json.RawMessage }
	if json.Unmarshal(f.Parameters, &s) != nil || len(s.Properties) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		if err != nil || d.Decode(new(json.RawMessage)) != nil {
			return nil
		}
		name, _ := key.(string)
		names = append(names, name)
	}
	return names
}
