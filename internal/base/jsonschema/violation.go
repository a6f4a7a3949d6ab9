package jsonschema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Keyword names the schema keyword that a value violates. This package declares all possible values.
type Keyword string

// The schema keywords that a Violation can name. Each comment first says what the field Want contains, then after the
// semicolon what Got contains. An alternative is one of the schemas in the array.
const (
	Type                 Keyword = "type"                 // []string, the allowed types; string, the actual type
	Enum                 Keyword = "enum"                 // []any, the allowed values; the value
	Const                Keyword = "const"                // the only allowed value; the value
	Minimum              Keyword = "minimum"              // json.Number, the bound; the value
	Maximum              Keyword = "maximum"              // as for Minimum
	ExclusiveMinimum     Keyword = "exclusiveMinimum"     // as for Minimum
	ExclusiveMaximum     Keyword = "exclusiveMaximum"     // as for Minimum
	MultipleOf           Keyword = "multipleOf"           // as for Minimum
	MinLength            Keyword = "minLength"            // int, a number of characters; int
	MaxLength            Keyword = "maxLength"            // as for MinLength
	Pattern              Keyword = "pattern"              // string, the pattern; string, the value
	Format               Keyword = "format"               // string, its name; string, the value; see Err
	MinItems             Keyword = "minItems"             // int, the bound; int, the number of items
	MaxItems             Keyword = "maxItems"             // as for MinItems
	UniqueItems          Keyword = "uniqueItems"          // nil; [2]int, the indexes of two equal items
	AdditionalItems      Keyword = "additionalItems"      // nil; int, the number of items that are not allowed
	Contains             Keyword = "contains"             // nil; nil
	MinContains          Keyword = "minContains"          // int, the bound; int, the number of matching items
	MaxContains          Keyword = "maxContains"          // as for MinContains
	MinProperties        Keyword = "minProperties"        // int, the bound; int, the number of properties
	MaxProperties        Keyword = "maxProperties"        // as for MinProperties
	Required             Keyword = "required"             // see Missing
	DependentRequired    Keyword = "dependentRequired"    // see Missing; Got is the property that requires them
	AdditionalProperties Keyword = "additionalProperties" // see Unknown: the properties not allowed
	PropertyNames        Keyword = "propertyNames"        // see Unknown: the invalid name
	Not                  Keyword = "not"                  // nil; nil
	AnyOf                Keyword = "anyOf"                // nil; nil; only if no alternative adds a violation
	OneOf                Keyword = "oneOf"                // nil; [2]int, two matching schemas, or nil as for AnyOf
	False                Keyword = "false"                // nil; nil: the schema is false
)

// Violation describes one reason why a value does not conform to a schema.
type Violation struct {
	Path      []string // names and indexes that lead from the root to the value; callers must not change the slice
	Keyword   Keyword
	Want, Got any
	Missing   []string
	Unknown   []string
	Err       error
}

// WantedTypes returns the type names in Want if the violated keyword is Type, otherwise nil.
func (v *Violation) WantedTypes() []string {
	names, _ := v.Want.([]string)
	return names
}

// WantedValues returns the values in Want if the violated keyword is Enum, otherwise nil.
func (v *Violation) WantedValues() []any {
	values, _ := v.Want.([]any)
	return values
}

// tellsMoreThan reports whether v is more specific than o. Violations of anyOf and oneOf are the least specific. Of
// two others, the more deeply nested one is more specific.
func (v *Violation) tellsMoreThan(o *Violation) bool {
	vague := func(k Keyword) bool { return k == AnyOf || k == OneOf }
	if vague(v.Keyword) != vague(o.Keyword) {
		return vague(o.Keyword)
	}
	return len(v.Path) > len(o.Path)
}

// String describes the violation in English, without the path.
func (v *Violation) String() string {
	switch v.Keyword {
	case Type:
		return fmt.Sprintf("got %s, want %s", v.Got, strings.Join(v.WantedTypes(), " or "))
	case Enum, Const:
		return v.oneOfValues()
	case Required, DependentRequired, AdditionalProperties, PropertyNames:
		return v.joinNames()
	case Pattern:
		return fmt.Sprintf("%s does not match pattern %s", quoteValue(v.Got), quoteValue(v.Want))
	case Format:
		return fmt.Sprintf("%s is not valid %s: %v", quoteValue(v.Got), v.Want, v.Err)
	case UniqueItems, OneOf:
		return v.joinIndexes()
	case AdditionalItems:
		return fmt.Sprintf("last %d additionalItem(s) not allowed", v.Got)
	case Contains:
		return "no items match contains schema"
	case MinContains, MaxContains:
		return fmt.Sprintf("%s %d items required to match contains schema, but matched %d items", v.Keyword[:3], v.Want, v.Got)
	case Not, AnyOf:
		return fmt.Sprintf("'%s' failed", v.Keyword)
	case False:
		return "false schema"
	}
	return fmt.Sprintf("%s: got %s, want %s", v.Keyword, formatNumber(v.Got), formatNumber(v.Want))
}

func (v *Violation) oneOfValues() string {
	values, ok := v.Want.([]any)
	if !ok || v.Keyword == Const {
		values = []any{v.Want}
	}
	words := make([]string, len(values))
	for i, x := range values {
		switch typeOf(x) {
		case arrayType, objectType:
			return fmt.Sprintf("'%s' failed", v.Keyword)
		}
		words[i] = quoteValue(x)
	}
	if len(words) == 1 {
		return "value must be " + words[0]
	}
	return "value must be one of " + strings.Join(words, ", ")
}

func (v *Violation) joinNames() string {
	switch v.Keyword {
	case PropertyNames:
		return "invalid propertyName " + quoteAll(v.Unknown)
	case AdditionalProperties:
		return "additional properties " + quoteAll(v.Unknown) + " not allowed"
	case DependentRequired:
		return fmt.Sprintf("properties %s required, if %s exists", quoteAll(v.Missing), quoteValue(v.Got))
	}
	if len(v.Missing) == 1 {
		return "missing property " + quoteAll(v.Missing)
	}
	return "missing properties " + quoteAll(v.Missing)
}

func (v *Violation) joinIndexes() string {
	two, ok := v.Got.([2]int)
	switch {
	case !ok:
		return "'oneOf' failed, none matched"
	case v.Keyword == OneOf:
		return fmt.Sprintf("'oneOf' failed, subschemas %d, %d matched", two[0], two[1])
	}
	return fmt.Sprintf("items at %d and %d are equal", two[0], two[1])
}

// quoteValue puts single quotes around strings and leaves other values unchanged.
func quoteValue(v any) string {
	s, ok := v.(string)
	if !ok {
		return fmt.Sprint(v)
	}
	s = strconv.Quote(s)
	s = strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`)
	return "'" + strings.ReplaceAll(s, `'`, `\'`) + "'"
}

func quoteAll(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = quoteValue(n)
	}
	return strings.Join(q, ", ")
}

// formatNumber formats a number with commas and without needless decimals: 5000.0 becomes "5,000".
func formatNumber(v any) string {
	s := fmt.Sprint(v)
	if n, ok := v.(json.Number); ok {
		s = string(n)
	}
	if len(s) > 40 {
		return s[:40] + "…"
	}
	if strings.ContainsAny(s, "eE") {
		return s
	}
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}

func typeName(v any) string {
	for _, name := range typeOf(v).typeList() {
		return name
	}
	return fmt.Sprintf("%T", v)
}
