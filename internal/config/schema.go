package config

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// jsonSchema is a JSON Schema, draft 2020-12, or a part of one.
type jsonSchema map[string]any

// Regular expressions for values with a unit, valid in Go and in JavaScript. They do not check the range.
const (
	sizePattern  = `^\s*[0-9.]+\s*([kKmMgGtT]([iI]?[bB])?|[bB]([yY][tT][eE][sS]?)?)?\s*$`
	timePattern  = `^\s*[0-9.]+\s*([a-zA-Z]+(\s*[0-9.]+\s*[a-zA-Z]+)*)?\s*$`
	corePattern  = `^\s*[0-9.]+\s*([cC][oO][rR][eE][sS]?|[cC][pP][uU][sS]?)?\s*$`
	ratePattern  = `^\s*[+-]?[0-9]+\s*/\s*[a-zA-Z]+\s*$`
	floatPattern = `^[-+0-9.a-zA-Z_]+$`
	intPattern   = `^[+-]?[0-9]+$`
	// variablePattern matches text that contains a placeholder for an environment variable. The schema accepts any
	// such text, because only the reader can expand and check it.
	variablePattern = `\$`
)

// SettingsSchema returns the JSON Schema of retort.yaml. A document that the reader of the settings accepts is valid
// for the schema. The reverse does not hold for what a schema cannot express: ranges of values with a unit,
// expressions, and relations between settings.
func SettingsSchema() ([]byte, error) {
	var s Settings
	schema := s.reader().schema()
	describeDefaults(schema, Settings{}.WithDefaults())
	whole := jsonSchema{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "retort.yaml",
	}
	maps.Copy(whole, schema)
	return json.MarshalIndent(whole, "", "  ")
}

// describeDefaults adds to the schema of the settings the default of each setting that has one.
func describeDefaults(schema jsonSchema, defaults Settings) {
	shown, _ := defaults.reader().show().([]shownSetting)
	addDefaults(schema, shown)
}

func addDefaults(schema jsonSchema, shown []shownSetting) {
	properties, _ := schema["properties"].(jsonSchema)
	for _, s := range shown {
		property, ok := properties[s.key].(jsonSchema)
		if !ok {
			continue
		}
		if inner, nested := s.value.([]shownSetting); nested {
			addDefaults(property, inner)
			continue
		}
		if s.value != nil {
			property["default"] = s.value
		}
	}
}

// schemaMaker returns the schema of a setting's value. It is a function, so that schemas are made only on demand:
// settings are read far more often than schemas are needed.
type schemaMaker func() jsonSchema

// objectSchema describes an object with the given fields, and no others if closed is set. A field may be null,
// which the reader treats like a missing field.
func objectSchema(fields []fieldReader, closed bool) schemaMaker {
	return func() jsonSchema {
		properties := jsonSchema{}
		for _, f := range fields {
			property := orNull(f.schema())
			if f.doc != "" {
				property["description"] = f.doc
			}
			properties[f.key] = property
		}
		s := jsonSchema{"type": "object", "properties": properties}
		if closed {
			s["additionalProperties"] = false
		}
		return s
	}
}

// mapSchema describes an object with arbitrary keys, whose values are those that the reader value accepts.
func mapSchema(value func() settingReader) schemaMaker {
	return func() jsonSchema {
		return jsonSchema{"type": "object", "additionalProperties": orNull(value().schema())}
	}
}

func listSchema(item func() settingReader) schemaMaker {
	return func() jsonSchema { return jsonSchema{"type": "array", "items": item().schema()} }
}

// textSchema describes text. The reader also takes numbers and booleans, because people write PORT: 8080.
func textSchema() jsonSchema {
	return jsonSchema{"type": []string{"string", "number", "boolean"}}
}

func boolSchema() jsonSchema {
	return anyOf(typeSchema("boolean"), stringSchema("^(true|false)$"))()
}

func typeSchema(name string) schemaMaker {
	return func() jsonSchema { return jsonSchema{"type": name} }
}

func wordSchema(word string) schemaMaker {
	return func() jsonSchema { return jsonSchema{"const": word} }
}

func enumSchema(values []string) schemaMaker {
	choice := func() jsonSchema { return jsonSchema{"enum": values} }
	return anyOf(choice, func() jsonSchema { return jsonSchema{"type": "string", "pattern": variablePattern} })
}

// stringSchema describes a string that matches pattern or contains a variable.
func stringSchema(pattern string) schemaMaker {
	return func() jsonSchema {
		return jsonSchema{"type": "string", "pattern": "(" + pattern + ")|" + variablePattern}
	}
}

// matchingSchema describes text that matches pattern or contains a variable. It cannot check numbers and booleans,
// which the reader takes as text.
func matchingSchema(pattern string) schemaMaker {
	return func() jsonSchema {
		s := stringSchema(pattern)()
		s["type"] = textSchema()["type"]
		return s
	}
}

// numberSchema describes a number from lo to hi, or text that matches pattern.
func numberSchema(lo, hi float64, pattern string) schemaMaker {
	number := func() jsonSchema { return jsonSchema{"type": "number", "minimum": lo, "maximum": hi} }
	return anyOf(number, stringSchema(pattern))
}

func integerSchema(lo, hi int) schemaMaker {
	number := func() jsonSchema { return jsonSchema{"type": "integer", "minimum": lo, "maximum": hi} }
	return anyOf(number, stringSchema(intPattern))
}

// anyOf describes a value that one of the schemas describes.
func anyOf(makers ...schemaMaker) schemaMaker {
	return func() jsonSchema {
		choices := make([]jsonSchema, len(makers))
		for i, m := range makers {
			choices[i] = m()
		}
		return jsonSchema{"anyOf": choices}
	}
}

// withRequired returns a schema like m that requires keys, if the value is an object.
func (m schemaMaker) withRequired(keys ...string) schemaMaker {
	return func() jsonSchema {
		s := m()
		s["required"] = keys
		return s
	}
}

// orNull returns a copy of s that also allows null.
func orNull(s jsonSchema) jsonSchema {
	s = maps.Clone(s)
	switch t := s["type"].(type) {
	case string:
		s["type"] = []string{t, "null"}
	case []string:
		s["type"] = append(slices.Clone(t), "null")
	default:
		choices, _ := s["anyOf"].([]jsonSchema)
		s["anyOf"] = append(slices.Clone(choices), jsonSchema{"type": "null"})
	}
	return s
}

// shownSetting is one setting with its current value, in the form in which settingReader.show returns it.
type shownSetting struct {
	key, doc string
	value    any
	note     string // a remark for the user
}

// literalText is the text of a value, such as 512MB, that is written without quotes.
type literalText string

func showFields(fields []fieldReader) []shownSetting {
	var shown []shownSetting
	for _, f := range fields {
		if f.show != nil {
			shown = append(shown, shownSetting{key: f.key, doc: f.doc, value: f.show()})
		}
	}
	return shown
}

// showText returns a string in the form of settingReader.show. It hides the password in a URL.
func showText(s string) any {
	if s == "" {
		return nil
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			return scheme + "://***@" + rest[at+1:]
		}
	}
	return s
}

// hidden returns a reader like s whose value is omitted when settings are shown.
func hidden(s settingReader) settingReader {
	s.show = nil
	return s
}

// hidePath returns a reader like s for a URL. When settings are shown, the URL's path and query are omitted,
// because they can be secret.
func hidePath(s settingReader) settingReader {
	show := s.show
	s.show = func() any {
		text, ok := show().(string)
		if !ok {
			return nil
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return "***"
		}
		if strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == "" {
			return text
		}
		return u.Scheme + "://" + u.Host + "/***"
	}
	return s
}

// secret returns a reader like s, except that the value is shown as *** everywhere, also in errors about it.
func secret(s settingReader) settingReader {
	read := s.read
	s.read = func(r *nodeReader, n *valueNode) {
		known := len(r.problems)
		read(r, n)
		for i := known; i < len(r.problems) && n.text != ""; i++ {
			r.problems[i].Message = strings.ReplaceAll(r.problems[i].Message, strconv.Quote(shortenText(n.text)), "***")
		}
	}
	show := s.show
	s.show = func() any {
		if show() == nil {
			return nil
		}
		return "***"
	}
	return s
}
