package config

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Differ names the settings that are not the same in both, as a file spells them, in the order of Settings.
func Differ(a, b Settings) (names []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			names = append(names, keyOf(x.Type().Field(i).Name))
		}
	}
	return slices.Compact(names)
}

// keyOf returns the key of a field of Settings in a file.
func keyOf(field string) string {
	switch field {
	case "MaxTasks":
		return "maxConcurrentTasks"
	case "PIITokenization":
		return "piiTokenization"
	case "GVisor":
		return "gvisor"
	case "SandboxFloor":
		return "securityLevel"
	case "Levels", "PolicyNotes":
		return "permission_levels"
	}
	if strings.ToUpper(field) == field {
		return strings.ToLower(field)
	}
	return string(unicode.ToLower(rune(field[0]))) + field[1:]
}
