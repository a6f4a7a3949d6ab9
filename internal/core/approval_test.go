package core

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestGrouped(t *testing.T) {
	of := func(id, execution, arguments string) Approval {
		q := Question{Execution: execution, Server: "crm", Tool: "delete", Arguments: []byte(arguments)}
		return Approval{ID: id, Digest: q.ApprovalDigest(), Question: q}
	}
	waiting := []Approval{of("a", "x", "1"), of("b", "x", "2"), of("c", "y", "1"), of("d", "x", "1")}
	list := GroupEqual(waiting)
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
	if same := (Question{Execution: "y", Effects: []IntendedCall{{Server: "a"}}}); !q.Equals(same) {
		t.Error("only the execution differs")
	}
	for i := range reflect.TypeFor[Question]().NumField() {
		other := q
		if changed := change(reflect.ValueOf(&other).Elem().Field(i)); changed && q.Equals(other) != (reflect.TypeFor[Question]().Field(i).Name == "Execution") {
			t.Errorf("%s: equal is %v", reflect.TypeFor[Question]().Field(i).Name, q.Equals(other))
		}
	}
	for i := range reflect.TypeFor[IntendedCall]().NumField() {
		other := q
		other.Effects = slices.Clone(q.Effects)
		if change(reflect.ValueOf(&other.Effects[0]).Elem().Field(i)); q.Equals(other) {
			t.Errorf("%s of an effect makes no difference", reflect.TypeFor[IntendedCall]().Field(i).Name)
		}
	}
	if login := (Question{Login: "https://example.org"}); login.Equals(login) {
		t.Error("two logins are one")
	}
}

// change gives a field a different value. It returns true, and panics for a kind of field that it does not support.
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
