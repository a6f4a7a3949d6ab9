package core

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestGrouped(t *testing.T) {
	of := func(id, execution, arguments string) Approval {
		q := Question{Execution: execution, Server: "crm", Tool: "delete", Arguments: []byte(arguments)}
		return Approval{ID: id, Digest: q.ApprovalDigest(), Question: q}
	}
	waiting := []Approval{of("a", "x", "1"), of("b", "x", "2"), of("c", "y", "1"), of("d", "x", "1")}
	list := GroupAlike(waiting)
	if len(list) != 2 || list[0].ID != "a" || list[0].Count != 3 || !slices.Equal(list[0].Same, []string{"c", "d"}) || list[1].ID != "b" || list[1].Count != 0 || list[1].Same != nil {
		t.Errorf("%+v", list)
	}
	if waiting[0].Same != nil {
		t.Error("what was given has changed")
	}
	if text := list[0].RenderText(); !strings.Contains(text, "there are 3 identical requests, and the answer applies to all 3\n") || strings.Contains(list[1].RenderText(), "identical") {
		t.Error(text)
	}
}

// TestEquals checks that questions are equal only if they differ in nothing but the execution. It changes every field
// of a question and of its effects by reflection, so that it covers fields that are added later.
func TestEquals(t *testing.T) {
	q := Question{Execution: "x", Effects: []IntendedCall{{Server: "a"}}}
	if same := (Question{Execution: "y", Effects: []IntendedCall{{Server: "a"}}}); !q.IsAlike(same) {
		t.Error("only the execution differs")
	}
	for i := range reflect.TypeFor[Question]().NumField() {
		other := q
		if changed := change(reflect.ValueOf(&other).Elem().Field(i)); changed && q.IsAlike(other) != (reflect.TypeFor[Question]().Field(i).Name == "Execution") {
			t.Errorf("%s: equal is %v", reflect.TypeFor[Question]().Field(i).Name, q.IsAlike(other))
		}
	}
	for i := range reflect.TypeFor[IntendedCall]().NumField() {
		other := q
		other.Effects = slices.Clone(q.Effects)
		if change(reflect.ValueOf(&other.Effects[0]).Elem().Field(i)); q.IsAlike(other) {
			t.Errorf("%s of an effect makes no difference", reflect.TypeFor[IntendedCall]().Field(i).Name)
		}
	}
	if login := (Question{Login: "https://example.org"}); login.IsAlike(login) {
		t.Error("two logins are one")
	}
}

// change gives a field a different value and returns true. It panics for a kind of field that it does not support.
func change(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "!")
	case reflect.Int:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), v.Len()+1, v.Len()+1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		panic("a question has a field of the kind " + v.Kind().String())
	}
	return true
}

// TestDangerFirst checks that the most dangerous question is listed first, and the most dangerous call of a dry run.
// It also checks that long arguments do not hide short ones that may be dangerous.
func TestDangerFirst(t *testing.T) {
	list := []Approval{
		{ID: "read", Question: Question{Tool: "t", Effect: "read"}}, {ID: "write", Question: Question{Tool: "t", Effect: "write"}}, {ID: "program", Question: Question{Level: "high"}},
		{ID: "critical", Question: Question{Tool: "t", Effect: "write", Critical: "sudo"}}, {ID: "irreversible", Question: Question{Tool: "t", Effect: "irreversible"}}, {ID: "login", Question: Question{Login: "x"}},
		{ID: "personal", Question: Question{Tool: "t", Effect: "write", Crosses: "email"}}, {ID: "dry run", Question: Question{Level: "low", Effects: []IntendedCall{{Effect: "write"}, {Effect: "irreversible"}}}},
	}
	var ids []string
	for _, a := range SortByDanger(list) {
		ids = append(ids, a.ID)
	}
	if got := strings.Join(ids, " "); got != "critical program irreversible dry run personal write read login" {
		t.Error(got)
	}
	var effects []IntendedCall
	for i := range 30 {
		effects = append(effects, IntendedCall{Server: "s", Tool: "write", Effect: "write", Arguments: []byte(strconv.Itoa(i))})
	}
	effects = append(effects, IntendedCall{Server: "s", Tool: "delete", Effect: "irreversible", Arguments: []byte("{}")})
	text := Approval{Question: Question{Effects: effects}}.RenderText()
	if !strings.Contains(text, "1 of the 31 calls cannot be undone") || !strings.Contains(text, "\n1. s.delete") || !strings.Contains(text, "\n31. s.write") {
		t.Error(text)
	}
	arguments := `{"a<":"` + strings.Repeat("x", 10_000) + `", "b": [1,2],"b":{"deep": true}, "force":true}`
	text = Approval{Question: Question{Tool: "t", Arguments: []byte(arguments)}}.RenderText()
	force, long := strings.Index(text, `"force": true`), strings.Index(text, `"a<": "xxx`)
	if force < 0 || long < force || strings.Count(text, `"b":`) != 2 || !strings.Contains(text, "bytes, short values first") || strings.Count(text, "x") < 10_000 {
		t.Errorf("%.400s", text)
	}
	for _, odd := range []string{`[` + strings.Repeat("1,", 5000) + `1]`, `{"a":` + strings.Repeat("[", 5000), strings.Repeat("x", 5000)} {
		if got := shortFirst([]byte(odd)); string(got) != odd {
			t.Errorf("%.100s became %.100s", odd, got)
		}
	}
}
