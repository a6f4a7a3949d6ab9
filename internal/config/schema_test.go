package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"retort/internal/base/jsonschema"
)

const schemaFile = "../../retort.schema.json"

// TestSchemaFile checks that retort.schema.json is the schema of the settings. With -update it writes the file.
func TestSchemaFile(t *testing.T) {
	want, err := SettingsSchema()
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(schemaFile); err != nil || string(got) != string(want) {
		t.Errorf("%v: %s differs from the settings. Write it: go test ./internal/config -run TestSchemaFile -update", err, schemaFile)
	}
}

// TestEverySettingIsDescribed checks that each setting has a description in the schema, and a type or choices.
func TestEverySettingIsDescribed(t *testing.T) {
	var s Settings
	var check func(path string, schema jsonSchema)
	check = func(path string, schema jsonSchema) {
		properties, _ := schema["properties"].(jsonSchema)
		for key, property := range properties {
			p := property.(jsonSchema)
			if described := p["description"] != nil; !described && !undescribed.MatchString(path+key) {
				t.Errorf("%s has no description", path+key)
			}
			check(path+key+".", p)
		}
	}
	check("", s.reader().schema())
}

// undescribed matches the settings whose name is the description.
var undescribed = regexp.MustCompile(`^(permission_levels|sandbox_options)\.`)

// settingsChecker checks documents with the reader of the settings and with their schema.
type settingsChecker struct {
	t      *testing.T
	schema *jsonschema.Schema
}

func newSettingsChecker(t *testing.T) settingsChecker {
	t.Helper()
	text, err := SettingsSchema()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return settingsChecker{t, schema}
}

// structuralProblems matches the messages of problems that the schema must find, too.
var structuralProblems = regexp.MustCompile(`unknown key|expected one of|expected true or false|expected an object, |expected a list|expected a string, |` +
	`is missing$|the rule does not name|needs a domain, a header`)

// isStructural reports whether err has a problem that the schema must find, too. The schema does not know the names of
// further types of personal data.
func isStructural(err error) bool {
	return slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool {
		return structuralProblems.MatchString(line) && !strings.Contains(line, "expected one of email, ")
	})
}

// check reports a difference between the reader and the schema for a document in YAML. It returns whether the reader
// accepts the document.
func (c settingsChecker) check(text string) bool {
	c.t.Helper()
	n, err := parseYAML([]byte(text))
	if err != nil {
		return false // not YAML
	}
	_, err = ParseSettings("retort.yaml", "/p", []byte(text), func(string) (string, bool) { return "xxxx", true })
	value, decodeErr := jsonschema.Decode(n.appendJSON(nil))
	if decodeErr != nil {
		c.t.Fatalf("%v in %s", decodeErr, text)
	}
	violation := c.schema.Validate(value)
	switch {
	case err == nil && violation != nil && n.kind == objectKind:
		c.t.Errorf("the reader accepts this and the schema does not (%+v):\n%s", *violation, text)
	case err != nil && violation == nil && isStructural(err) && !strings.Contains(text, "$"):
		c.t.Errorf("the schema accepts this and the reader says %v:\n%s", err, text)
	}
	return err == nil
}

// TestSchemaAcceptsFixtures checks that the schema and the reader agree on all examples of settings.
func TestSchemaAcceptsFixtures(t *testing.T) {
	c := newSettingsChecker(t)
	accepted := 0
	try := func(text string) {
		if c.check(text) {
			accepted++
		}
	}
	for _, b := range settingsBlocks(t) {
		try(b.text)
	}
	for _, pattern := range []string{"testdata/policies/*.yaml", "testdata/*.yaml", "../../examples/*/retort.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			try(string(text))
		}
	}
	scripts, err := filepath.Glob("../../testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlInScript.FindAllStringSubmatch(string(text), -1) {
			try(m[1])
		}
	}
	if accepted < 80 {
		t.Errorf("only %d examples were accepted", accepted)
	}
}

var yamlInScript = regexp.MustCompile(`(?m)^-- \S*retort\.yaml --\n((?:(?:[^-\n]|-[^-]|--[^ ]).*\n|\n)*)`)

// TestSchemaAgrees checks that the schema and the reader agree on 10,000 random documents.
func TestSchemaAgrees(t *testing.T) {
	c := newSettingsChecker(t)
	whole := sampleSettings(t)
	random := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 10_000 {
		doc := map[string]any{}
		keys := slices.Sorted(maps.Keys(whole))
		for range 1 + random.IntN(4) {
			key := keys[random.IntN(len(keys))]
			doc[key] = mutate(random, whole[key])
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if c.check(string(text)) {
			accepted++
		}
		if t.Failed() {
			return
		}
	}
	if accepted < 1000 || accepted > 9000 {
		t.Errorf("%d of 10,000 documents were accepted; both kinds are needed", accepted)
	}
}

// sampleSettings returns a valid value for nearly every setting.
func sampleSettings(t *testing.T) map[string]any {
	t.Helper()
	file, err := os.ReadFile("testdata/every-setting.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n, err := parseYAML(file)
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(n.appendJSON(nil), &whole); err != nil {
		t.Fatal(err)
	}
	return whole
}

// mutate returns v, or a copy of v in which one value at a random place has been replaced.
func mutate(random *rand.Rand, v any) any {
	odd := []any{nil, true, "true", "x", "", 0, 1, -1, 1.5, 1e12, "5", "10m", "1h30m", "512MB", "12 parsecs", "100/minute", "off", []any{}, []any{"a"}, map[string]any{}, map[string]any{"a": 1}, "${VAR}"}
	switch random.IntN(5) {
	case 0:
		return v
	case 1:
		return odd[random.IntN(len(odd))]
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return v
		}
		clone := maps.Clone(v)
		keys := slices.Sorted(maps.Keys(v))
		key := keys[random.IntN(len(keys))]
		switch random.IntN(6) {
		case 0:
			delete(clone, key)
		case 1:
			clone[fmt.Sprintf("%sx", key)] = v[key]
		default:
			clone[key] = mutate(random, v[key])
		}
		return clone
	case []any:
		if len(v) == 0 {
			return v
		}
		clone := slices.Clone(v)
		i := random.IntN(len(v))
		clone[i] = mutate(random, v[i])
		return clone
	}
	return odd[random.IntN(len(odd))]
}

// TestEverySettingHasASample checks that testdata/every-setting.yaml is valid and has all settings.
func TestEverySettingHasASample(t *testing.T) {
	whole := sampleSettings(t)
	var s Settings
	var check func(path string, schema jsonSchema, value any)
	check = func(path string, schema jsonSchema, value any) {
		properties, _ := schema["properties"].(jsonSchema)
		inner, _ := value.(map[string]any)
		for key, property := range properties {
			if _, ok := inner[key]; !ok && path+key != "network_policy" {
				t.Errorf("%s has no sample", path+key)
			}
			if path+key != "network_policy" {
				check(path+key+".", property.(jsonSchema), inner[key])
			}
		}
	}
	check("", s.reader().schema(), whole)
}
