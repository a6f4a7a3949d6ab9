package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// alwaysShown returns the settings that RenderYAML writes even if they have their defaults, because they control what
// programs may do.
func alwaysShown() []string {
	return []string{"sandboxMode", "securityLevel", "permissionLevel", "resourceLimits", "network", "anomalies"}
}

// RenderYAML returns as YAML the settings that differ from their defaults, and those that control what programs may
// do. If all is true, it returns every setting that has a value. network_policy appears as the settings that it was
// translated to. Parts of network_policy, permission_levels and sandbox_options that have no effect appear as
// comments. Secret values appear as ***. The defaults must have been filled in, as WithDefaults does.
func (s Settings) RenderYAML(all bool) string { return s.renderStated(nil, all) }

// RenderSettings returns the settings of c like Settings.RenderYAML. A comment behind each setting that a file states
// names the file and the line.
func (c *Config) RenderSettings(all bool) string { return c.Settings.renderStated(c.Stated, all) }

func (s Settings) renderStated(stated map[string]Position, all bool) string {
	w := &yamlWriter{stated: stated}
	normal := map[string]any{}
	defaults := Settings{}.WithDefaults()
	for _, d := range showOf(defaults.reader()) {
		normal[d.key] = d.value
	}
	for _, x := range showOf(s.reader()) {
		wanted := all || slices.Contains(alwaysShown(), x.key) || !reflect.DeepEqual(x.value, normal[x.key])
		if wanted || w.isStated(x.key) {
			w.writeSetting("", "", x)
		}
		if x.key == "securityLevel" && s.SandboxFloor != "" {
			w.writeLine("# with sandboxMode: auto, at least the sandbox %s", s.SandboxFloor)
		}
	}
	for _, n := range s.PolicyNotes {
		w.writeLine("# %s", n)
	}
	return w.b.String()
}

func showOf(r settingReader) []shownSetting {
	shown, _ := r.show().([]shownSetting)
	return shown
}

type yamlWriter struct {
	b      strings.Builder
	stated map[string]Position
}

func (w *yamlWriter) writeLine(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

func (w *yamlWriter) isStated(path string) bool { return w.stated[path].File != "" }

// writeSetting writes one setting. above is the path of the setting that contains it, which ends with a dot.
func (w *yamlWriter) writeSetting(indent, above string, s shownSetting) {
	path := above + s.key
	inner, object := s.value.([]shownSetting)
	switch list, _ := s.value.([]any); {
	case isEmpty(s.value):
	case object && isDescribed(inner):
		w.writeLine("%s%s:", indent, quoteKey(s.key))
		w.writeNote(indent+"  ", s.note)
		for _, x := range inner {
			w.writeSetting(indent+"  ", path+".", x)
		}
	case len(list) > 0 && isObject(list[0]):
		w.writeLine("%s%s:%s", indent, quoteKey(s.key), w.originOf(path))
		for _, item := range list {
			w.writeLine("%s  - %s", indent, flowText(item))
		}
	default:
		w.writeLine("%s%s: %s%s", indent, quoteKey(s.key), flowText(s.value), w.originOf(path))
		w.writeNote(indent, s.note)
	}
}

func (w *yamlWriter) writeNote(indent, note string) {
	if note != "" {
		w.writeLine("%s# %s", indent, note)
	}
}

// originOf returns a comment with the file and line that set the setting at path, or "" if no file sets it.
func (w *yamlWriter) originOf(path string) string {
	at, ok := w.stated[path]
	if !ok && strings.HasPrefix(path, "network.") {
		at, ok = w.stated["network_policy"]
	}
	if !ok || at.File == "" {
		return ""
	}
	return fmt.Sprintf(" # %s:%d", at.File, at.Line)
}

// isEmpty reports whether a shown value contains no setting.
func isEmpty(value any) bool {
	inner, object := value.([]shownSetting)
	if !object {
		return value == nil
	}
	return !slices.ContainsFunc(inner, func(x shownSetting) bool { return !isEmpty(x.value) })
}

func isObject(value any) bool {
	_, ok := value.([]shownSetting)
	return ok
}

// isDescribed reports whether RenderYAML writes an object with one line for each key. It does so if the keys are
// settings, or if the object contains such objects.
func isDescribed(object []shownSetting) bool {
	return slices.ContainsFunc(object, func(x shownSetting) bool {
		inner, nested := x.value.([]shownSetting)
		return x.doc != "" || nested && !isEmpty(inner)
	})
}

// flowText returns a shown value as YAML on one line.
func flowText(value any) string {
	switch v := value.(type) {
	case []shownSetting:
		var parts []string
		for _, x := range v {
			if !isEmpty(x.value) {
				parts = append(parts, quoteKey(x.key)+": "+flowText(x.value))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = flowText(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case literalText:
		return string(v)
	case string:
		return quoteYAML(v)
	}
	return fmt.Sprint(value)
}

// quoteYAML returns text as a YAML string in double quotes. JSON's form of a string has the same meaning in YAML.
func quoteYAML(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return string(quoted)
}

var plainKey = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// quoteKey returns a key as YAML, without quotes if it has none of YAML's special forms.
func quoteKey(s string) string {
	if plainKey.MatchString(s) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s)) {
		return s
	}
	return quoteYAML(s)
}

// showWord returns a word, such as the value of an enumeration, as a shown value. The word is written without quotes
// if YAML reads it as text.
func showWord(s string) any {
	if s == "" {
		return nil
	}
	if quoteKey(s) != s {
		return s
	}
	return literalText(s)
}

// showLevels returns the rules of permission levels, with paths in the form that programs use.
func showLevels(levels map[PermissionLevel]LevelRules) []shownSetting {
	var shown []shownSetting
	for _, level := range permissionLevels() {
		l, ok := levels[level]
		if !ok {
			continue
		}
		note := ""
		if level == PermissionReadOnly {
			note = "it writes to /workspace/" + Scratch + " and no other folder"
		}
		shown = append(shown, shownSetting{key: string(level), note: note, value: []shownSetting{
			{key: "filesystem", value: showPair("read", visiblePaths(l.Read), "write", visiblePaths(l.Write))},
			{key: "network", value: showPair("allow", l.Hosts, "deny", l.DenyHosts)},
			{key: "commands", value: showPair("allow", l.Commands, "deny", l.DenyCommands)},
			{key: "approval_required", value: l.ApprovalRequired},
		}})
	}
	return shown
}

func showPair(first string, a []string, second string, b []string) []shownSetting {
	return []shownSetting{{key: first, value: showTexts(a)}, {key: second, value: showTexts(b)}}
}

func showTexts(all []string) any {
	if all == nil {
		return nil
	}
	shown := []any{}
	for _, s := range all {
		shown = append(shown, s)
	}
	return shown
}

func visiblePaths(inside []string) []string {
	if inside == nil {
		return nil
	}
	paths := make([]string, len(inside))
	for i, p := range inside {
		paths[i] = strings.TrimSuffix("/workspace/"+p, "/.")
	}
	return paths
}

// starterKeys returns the settings that StarterSettings explains.
func starterKeys() []string {
	return []string{
		"securityLevel", "permissionLevel", "sandboxMode", "maxExecutionTime", "resourceLimits", "approval",
		"piiTokenization", "results", "network", "toolChanges", "auditLogging", "workspace",
	}
}

// StarterSettings returns the text of a new retort.yaml: the main settings, each explained and commented out with its
// default. schema is the file with the schema for editors.
func StarterSettings(schema string) string {
	defaults := Settings{}.WithDefaults()
	w := &yamlWriter{}
	w.writeLine("# yaml-language-server: $schema=./%s", schema)
	w.writeLine("# Settings of Retort. Each one is commented out and shows its default.")
	w.writeLine("# retort config check checks this file, and retort config show --defaults prints all settings.")
	for _, key := range starterKeys() {
		for _, s := range showOf(defaults.reader()) {
			if s.key == key {
				w.writeLine("")
				w.explainSetting("", s)
			}
		}
	}
	return w.b.String()
}

// explainSetting writes a setting as comments, below its description.
func (w *yamlWriter) explainSetting(indent string, s shownSetting) {
	inner, object := s.value.([]shownSetting)
	if isEmpty(s.value) {
		return
	}
	if !object {
		w.writeLine("# %s%s: %s  # %s", indent, quoteKey(s.key), flowText(s.value), s.doc)
		return
	}
	w.writeLine("# %s%s:  # %s", indent, quoteKey(s.key), s.doc)
	for _, x := range inner {
		w.explainSetting(indent+"  ", x)
	}
}
