package config

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// DifferingKeys returns the names of the settings that differ between a and b, as a file spells them, in the order of
// the fields of Settings.
func DifferingKeys(a, b Settings) (names []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			names = append(names, keyOf(x.Type().Field(i).Name))
		}
	}
	return slices.Compact(names)
}

// keyOf returns the key that a settings file uses for a field of Settings.
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
