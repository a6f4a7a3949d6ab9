package server

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// dropNulls is middleware for requests to the client. It removes members with the value null from a completed form,
// because some clients send null for a field that was left empty. The form's schema would not allow null, and the SDK
// would discard the whole answer.
func dropNulls(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if form, ok := result.(*mcp.ElicitResult); ok && form != nil {
			maps.DeleteFunc(form.Content, func(_ string, value any) bool { return value == nil })
		}
		return result, err
	}
}

// withoutUnset returns the arguments of a call without members that say "not given": null, and an empty string for an
// argument that is not a string. The argument into is the struct that the arguments are decoded into.
func withoutUnset(given map[string]json.RawMessage, into reflect.Type) map[string]json.RawMessage {
	kinds := argumentKinds(into)
	maps.DeleteFunc(given, func(name string, value json.RawMessage) bool {
		text := string(bytes.TrimSpace(value))
		kind, known := kinds[name]
		return known && (text == "null" || text == `""` && kind != reflect.String)
	})
	return given
}

// argumentKinds returns the kinds of a struct's fields by their JSON names, including those of embedded structs.
// Pointers count as what they point to.
func argumentKinds(t reflect.Type) map[string]reflect.Kind {
	kinds := map[string]reflect.Kind{}
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Anonymous:
			maps.Copy(kinds, argumentKinds(f.Type))
		case f.Type.Kind() == reflect.Pointer:
			kinds[f.Tag.Get("json")] = f.Type.Elem().Kind()
		default:
			kinds[f.Tag.Get("json")] = f.Type.Kind()
		}
	}
	return kinds
}
