package retort

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retort/internal/core"
)

// TestConversionsLoseNothing checks that conversions between internal and public types keep every field. It converts
// values in which no field is zero: a field that is zero afterwards was lost, unless the public type omits it on
// purpose.
func TestConversionsLoseNothing(t *testing.T) {
	for name, c := range map[string]struct {
		converted any
		lost      []string
	}{
		"outcome": {newOutcome(filledValue[core.Outcome]()), []string{"Artifacts.Modified", "Approvals.Effects.Count", "Approvals.Effects.IDs", "Effects.Count", "Effects.IDs", "Calls.Grade", "Calls.Reason"}},
		"job": {newJob(filledValue[core.JobState]()), []string{
			"Outcome.Artifacts.Modified", "Outcome.Approvals.Effects.Count", "Outcome.Approvals.Effects.IDs", "Outcome.Effects.Count",
			"Outcome.Effects.IDs", "Outcome.Calls.Grade", "Outcome.Calls.Reason",
		}},
		"found":      {newFound(filledValue[core.FoundTools]()), nil},
		"definition": {newDefinition(filledValue[core.ToolDefinition]()), nil},
		"answer":     {filledValue[Answer]().internal(), []string{"Also", "By"}},
		"request":    {filledValue[Request]().internal(), []string{"Guessed", "Noted", "Private", "Effects"}},
		"task":       {filledValue[Task]().internal(), []string{"Job"}},
		"config": {filledValue[Config]().internal(), []string{
			"Servers.Auth", "Servers.Client.Elicit", "Servers.Client.Sample", "Servers.Client.Roots", "Servers.Isolation",
			"Servers.Stateful", "Servers.Idle", "Servers.Instances", "Servers.Err", "OnlyServers",
		}},
	} {
		if diff := cmp.Diff(c.lost, zeroFields(reflect.ValueOf(c.converted), "")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestErrorsArePublic checks that Open returns a public *Error with the kind of the engine's error.
func TestErrorsArePublic(t *testing.T) {
	_, err := Open(t.Context(), Config{NoFiles: true, Home: t.TempDir(), Settings: "no: such setting\n"})
	var e *Error
	if !errors.As(err, &e) || e.Kind != string(core.KindInvalidArguments) {
		t.Errorf("got %T %v", err, err)
	}
}

// filledValue returns a value of type T in which no exported field is zero.
func filledValue[T any]() T {
	var v T
	fillValue(reflect.ValueOf(&v).Elem())
	return v
}

func fillValue(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.Set(reflect.ValueOf(json.RawMessage("1")))
		return
	case reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(errors.New("cause")))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), nil))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fillValue(value)
		v.SetMapIndex(reflect.ValueOf("x").Convert(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillValue(v.Field(i))
			}
		}
	}
}

// zeroFields returns the paths of the exported fields that are zero.
func zeroFields(v reflect.Value, path string) (zero []string) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct:
		return zeroFields(v.Index(0), path)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case f.Anonymous:
				zero = append(zero, zeroFields(v.Field(i), path)...)
			case f.IsExported():
				zero = append(zero, zeroFields(v.Field(i), path+"."+f.Name)...)
			}
		}
		return zero
	case v.IsZero():
		return []string{strings.TrimPrefix(path, ".")}
	}
	return nil
}
