package pipeline

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/privacy/redact"
	"retort/internal/privacy/vault"
)

// TestEveryTextIsHidden checks that personal data is hidden in every text of an Outcome, except in engineFields. So it
// fails for a new field in which nothing is hidden and that is not in engineFields.
func TestEveryTextIsHidden(t *testing.T) {
	screen, err := redact.New(redact.Options{}, vault.Open("", nil, 0)).OpenSession("default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := screen.RedactIncoming("crm", []byte(`{"firstName": "Hanne", "lastName": "Zandstra"}`)); err != nil {
		t.Fatal(err)
	}
	x := &programExecution{execution: &execution{pipeline: &Pipeline{}, screen: screen}}
	var o core.Outcome
	fillTexts(reflect.ValueOf(&o).Elem())
	var shown []string
	findTexts(reflect.ValueOf(x.hideOutcome(o)), "Outcome", &shown)
	if len(shown) > 0 {
		t.Errorf("these texts reach the model as they are: %s", strings.Join(shown, ", "))
	}
}

// TestHideTextsFailsClosed checks that hideTexts hides or leaves out a text in any kind of field.
func TestHideTextsFailsClosed(t *testing.T) {
	screen, err := redact.New(redact.Options{}, vault.Open("", nil, 0)).OpenSession("default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := screen.RedactIncoming("crm", []byte(`{"firstName": "Hanne", "lastName": "Zandstra"}`)); err != nil {
		t.Fatal(err)
	}
	x := &programExecution{execution: &execution{pipeline: &Pipeline{}, screen: screen}}
	type odd struct {
		Any   any
		List  []any
		Map   map[string]map[string]string
		Bytes []byte
		Array [1]string
		Func  func() string `json:"-"`
		Names []string
		Empty []string
		Count int
		Share float64
		Is    bool
	}
	name := plantedName
	given := odd{
		Any: name, List: []any{name}, Map: map[string]map[string]string{name: {name: name}}, Bytes: []byte(name), Array: [1]string{name},
		Func: func() string { return name }, Names: []string{name}, Count: 3, Share: 0.5, Is: true,
	}
	shown := x.hideTexts(reflect.ValueOf(given)).Interface().(odd)
	var found []string
	findTexts(reflect.ValueOf(shown), "odd", &found)
	if len(found) > 0 || shown.Any != nil || shown.List[0] != nil || strings.Contains(string(shown.Bytes), "Hanne") || shown.Array[0] != "" || shown.Func != nil {
		t.Errorf("shown: %v %+v", found, shown)
	}
	if len(shown.Names) != 1 || len(shown.Map) != 1 || shown.Empty != nil || shown.Count != 3 || shown.Share != 0.5 || !shown.Is {
		t.Errorf("%+v", shown)
	}
}

const plantedName = "Hanne Zandstra"

// fillTexts writes a name into all texts of a value, except into engineFields.
func fillTexts(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(plantedName)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillTexts(v.Elem())
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"` + plantedName + `": "` + plantedName + `"}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillTexts(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Type.Kind() != reflect.Interface && !engineFields[v.Type().Name()+"."+f.Name] {
				fillTexts(v.Field(i))
			}
		}
	}
}

// findTexts appends the paths of the texts that contain the name to found.
func findTexts(v reflect.Value, path string, found *[]string) {
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), "Hanne") {
			*found = append(*found, path)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			findTexts(v.Elem(), path, found)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			findTexts(key, path+"[key]", found)
			findTexts(v.MapIndex(key), path+"[]", found)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			if strings.Contains(string(v.Bytes()), "Hanne") {
				*found = append(*found, path)
			}
			return
		}
		for i := range v.Len() {
			findTexts(v.Index(i), path+"[]", found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				findTexts(v.Field(i), path+"."+f.Name, found)
			}
		}
	}
}
