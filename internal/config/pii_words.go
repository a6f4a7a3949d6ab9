package config

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"retort/internal/core"
)

// AddPIIWords adds words for a type of personal data to pii.words in the text of a retort.yaml, and returns the new
// text. Comments and everything else stay unchanged. added holds the words that were not listed before. The argument
// file is the name of the file in error messages. getenv looks up the variables in the settings. Errors are
// *core.Error.
func AddPIIWords(
	file string, text []byte, getenv func(string) (string, bool), piiType string, words []string,
) (changed []byte, added []string, err error) {
	dir := filepath.Dir(file)
	before, err := ParseSettings(file, dir, text, getenv)
	if err != nil {
		return nil, nil, err
	}
	root, failed := parseYAML(text)
	if failed != nil {
		return nil, nil, core.Errorf(core.KindInvalidArguments, "config.words", "%s: %w", file, failed)
	}
	want := slices.Clone(before.PII.Words[piiType])
	for _, word := range words {
		if !slices.Contains(want, word) {
			want = append(want, word)
		}
	}
	added = want[len(before.PII.Words[piiType]):]
	if len(added) == 0 {
		return text, nil, nil
	}
	e := &yamlEdit{lines: slices.Collect(strings.Lines(string(text)))}
	refused := e.addWords(root, piiType, added)
	changed = []byte(strings.Join(e.lines, ""))
	after, err := ParseSettings(file, dir, changed, getenv)
	if err != nil && refused == "" && strings.Contains(err.Error(), "pii.words") {
		return nil, nil, err // the type or a word is not valid
	}
	if before.PII.Words = maps.Clone(before.PII.Words); before.PII.Words == nil {
		before.PII.Words = map[string][]string{}
	}
	before.PII.Words[piiType] = want
	if refused == "" && !reflect.DeepEqual(before.PII, after.PII) {
		refused = "the words cannot be inserted"
	}
	if refused != "" {
		return nil, nil, core.Errorf(core.KindInvalidArguments, "config.words", "%s: %s", file, refused).
			WithHint("add the words yourself, to the list pii.words.%s", piiType)
	}
	return changed, added, nil
}

// yamlEdit changes the lines of a YAML file. Each line includes its line break.
type yamlEdit struct{ lines []string }

// addWords adds words to the list pii.words.TYPE, and the parts of this path that are missing. It returns a reason if
// a part is in YAML's flow style, with brackets, because lines can be inserted only into block style.
func (e *yamlEdit) addWords(root *valueNode, piiType string, words []string) (refused string) {
	node, indent, at := root, 0, len(e.lines)
	for i, key := range []string{"pii", "words", piiType} {
		entry := node.findEntry(key)
		if entry == nil || entry.value.kind == nullKind {
			missing := []string{"pii", "words", piiType}[i:]
			if entry != nil {
				missing, at, indent = missing[1:], entry.key.line, indent+2
			}
			e.insert(at, blockLines(missing, indent, words))
			return ""
		}
		if node = entry.value; node.line == entry.key.line {
			return "the value of the key " + key + " in line " + strconv.Itoa(entry.key.line) +
				" must begin in a line of its own, one entry in each line"
		}
		at, indent = entry.key.line, node.column-1
	}
	if node.kind != listKind || len(node.items) == 0 {
		return "pii.words." + piiType + " is not a list"
	}
	indent = strings.Index(e.lines[node.items[0].line-1], "-")
	e.insert(node.items[len(node.items)-1].line, blockLines(nil, indent, words))
	return ""
}

// insert adds lines after the first n lines.
func (e *yamlEdit) insert(n int, lines []string) {
	if n > 0 && !strings.HasSuffix(e.lines[n-1], "\n") {
		e.lines[n-1] += "\n"
	}
	e.lines = slices.Insert(e.lines, n, lines...)
}

// blockLines returns the lines of nested keys in block style, with a list of words as the innermost value. The first
// line is indented by indent blanks.
func blockLines(keys []string, indent int, words []string) (lines []string) {
	for _, key := range keys {
		lines = append(lines, strings.Repeat(" ", indent)+key+":\n")
		indent += 2
	}
	for _, word := range words {
		lines = append(lines, strings.Repeat(" ", indent)+"- "+quoteYAML(word)+"\n")
	}
	return lines
}
