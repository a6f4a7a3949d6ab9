package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	settingsPage   = "../../docs/reference/settings.md"
	beginsSettings = "<!-- Written by: go test ./internal/config -run TestSettingsReference -update -->\n"
	endsSettings   = "<!-- End of the written part -->\n"
)

// TestSettingsReference checks that the table in docs/reference/settings.md has all settings with their values,
// defaults and descriptions. With -update it writes the table.
func TestSettingsReference(t *testing.T) {
	page, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), beginsSettings)
	_, after, ends := strings.Cut(rest, endsSettings)
	if !found || !ends {
		t.Fatalf("%s has no place for the table", settingsPage)
	}
	want := before + beginsSettings + settingsTable() + endsSettings + after
	if *update {
		if err := os.WriteFile(settingsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want != string(page) && !*update {
		t.Errorf("%s differs from the settings. Write it: go test ./internal/config -run TestSettingsReference -update", settingsPage)
	}
}

func settingsTable() string {
	defaults := Settings{}.WithDefaults()
	var s Settings
	schema := s.reader().schema()
	addDefaults(schema, showOf(defaults.reader()))
	var b strings.Builder
	b.WriteString("\n| setting | values | default | |\n|---|---|---|---|\n")
	writeRows(&b, "", schema)
	b.WriteString("\n")
	return b.String()
}

func writeRows(b *strings.Builder, above string, schema jsonSchema) {
	properties, _ := schema["properties"].(jsonSchema)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		p := properties[key].(jsonSchema)
		path, inner := above+key, p
		switch items := itemsOf(p); {
		case items == nil:
		case p["additionalProperties"] != nil:
			path, inner = path+".NAME", items
		default:
			path, inner = path+"[]", items
		}
		standard := ""
		if d := p["default"]; d != nil {
			standard = "`" + flowText(d) + "`"
		}
		if description := p["description"]; description != nil {
			fmt.Fprintf(b, "| `%s` | %s | %s | %v |\n", above+key, valuesOf(p), standard, description)
		}
		writeRows(b, path+".", objectIn(inner))
	}
}

// itemsOf returns the schema of the items of a list or map of objects, or nil.
func itemsOf(p jsonSchema) jsonSchema {
	for _, key := range []string{"items", "additionalProperties"} {
		if items, ok := p[key].(jsonSchema); ok && objectIn(items)["properties"] != nil {
			return items
		}
	}
	return nil
}

// objectIn returns the object among the alternatives of a schema, or the schema itself.
func objectIn(p jsonSchema) jsonSchema {
	choices, _ := p["anyOf"].([]jsonSchema)
	for _, c := range choices {
		if c["properties"] != nil {
			return c
		}
	}
	return p
}

// valuesOf describes the values that a schema accepts.
func valuesOf(p jsonSchema) string {
	if p["properties"] != nil {
		return ""
	}
	if items, ok := p["items"].(jsonSchema); ok {
		return strings.TrimSpace("list " + bracketed(valuesOf(items)))
	}
	if values, ok := p["additionalProperties"].(jsonSchema); ok {
		return strings.TrimSpace("by name " + bracketed(valuesOf(values)))
	}
	choices, ok := p["anyOf"].([]jsonSchema)
	if !ok {
		return plainValues(p)
	}
	if low, high, unit := rangeOf(choices); unit != "" {
		return strings.Replace(unit, "LOW to HIGH", low+" to "+high, 1)
	}
	var parts []string
	for _, c := range choices {
		if v := valuesOf(c); v != "" && !slices.Contains(parts, v) {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, ", or ")
}

func bracketed(s string) string {
	if s == "" || s == "text" {
		return ""
	}
	return "(" + s + ")"
}

func plainValues(p jsonSchema) string {
	switch {
	case p["enum"] != nil:
		return "`" + strings.Join(p["enum"].([]string), "`, `") + "`"
	case p["const"] != nil:
		return fmt.Sprintf("`%v`", p["const"])
	case p["pattern"] == stringSchema(ratePattern)()["pattern"]:
		return "rate such as `100/minute`"
	case p["pattern"] == variablePattern || p["type"] == "null":
		return ""
	case p["type"] == "boolean":
		return "`true`, `false`"
	case p["type"] == "string" && strings.HasPrefix(fmt.Sprint(p["pattern"]), "(^(true|false)$)"):
		return ""
	}
	return "text"
}

// rangeOf returns the bounds of a number with a unit, and a format string that describes them.
func rangeOf(choices []jsonSchema) (low, high, text string) {
	var number jsonSchema
	var pattern any
	var others []string
	for _, c := range choices {
		switch {
		case c["minimum"] != nil:
			number = c
		case c["pattern"] != nil:
			pattern = c["pattern"]
		case c["const"] != nil:
			others = append(others, fmt.Sprintf("`%v` or ", c["const"]))
		case c["anyOf"] != nil:
			low, high, text = rangeOf(c["anyOf"].([]jsonSchema))
			return low, high, strings.Join(others, "") + text
		}
	}
	if number == nil {
		return "", "", ""
	}
	show := func(key string) string { return fmt.Sprint(number[key]) }
	text = "whole number, LOW to HIGH"
	switch pattern {
	case stringSchema(sizePattern)()["pattern"]:
		text, show = "size, LOW to HIGH", func(key string) string { return showSize(int64(number[key].(float64))) }
	case stringSchema(timePattern)()["pattern"]:
		text = "time, LOW to HIGH"
		show = func(key string) string {
			return showDuration(time.Duration(number[key].(float64) * float64(time.Millisecond)))
		}
	case stringSchema(corePattern)()["pattern"]:
		text = "processors, LOW to HIGH"
	case stringSchema(floatPattern)()["pattern"]:
		text, show = "number, LOW to HIGH", func(key string) string { return fmt.Sprintf("%.10g", number[key]) }
	}
	return show("minimum"), show("maximum"), strings.Join(others, "") + text
}
