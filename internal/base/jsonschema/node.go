package jsonschema

import "encoding/json"

// schemaNode represents one compiled subschema. Rules for rare keywords are behind pointers to save memory, because
// most nodes have little more than a type.
type schemaNode struct {
	resource  *schemaResource
	never     bool    // the schema false
	refAlone  bool    // before 2019-09 a reference makes its siblings void
	types     typeSet // 0: all
	ref       *schemaNode
	constant  *any
	enum      *enumRule
	object    *objectRules
	array     *arrayRules
	text      *textRules
	number    *numberRules
	applied   *appliedRules
	uneval    *unevaluatedRules
	anyResult bool // the schema true
}

// The nodes for the schemas true, which accepts every value, and false, which accepts none.
var (
	anyNode  = &schemaNode{anyResult: true}
	noneNode = &schemaNode{never: true}
)

type objectRules struct {
	least, most   int
	required      []string
	properties    map[string]*schemaNode
	names         []string // of properties, sorted
	patterns      []patternRule
	additional    *schemaNode // nil: anything
	propertyNames *schemaNode
	dependents    []dependentRule
}

type patternRule struct {
	pattern *compiledPattern
	node    *schemaNode
}

// dependentRule holds the rules that apply only if an object has a certain property.
type dependentRule struct {
	name     string
	required []string
	node     *schemaNode // may be nil
}

type arrayRules struct {
	least, most  int
	unique       bool
	prefix       []*schemaNode
	rest         *schemaNode // of the items behind prefix; nil: anything
	restKeyword  Keyword     // where rest was found
	contains     *schemaNode
	leastContain int
	mostContain  int
	containEvals bool // items that contains matches count as evaluated
	countContain bool // minContains was given
}

type textRules struct {
	least, most int
	pattern     *compiledPattern
	formatName  string
	format      func(string) error // may be nil
}

type numberRules struct {
	minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf *numberBound
}

type numberBound struct {
	text  json.Number
	value exactDecimal
}

// appliedRules holds the schemas that a keyword such as allOf applies to the same value.
type appliedRules struct {
	dynamicRef          *dynamicRef
	allOf, anyOf, oneOf []*schemaNode
	not, when, yes, no  *schemaNode
}

// dynamicRef represents a dynamic reference. It resolves to the outermost resource on the current evaluation path
// that defines the anchor. Without such a resource, it resolves to target.
type dynamicRef struct {
	target    *schemaNode
	anchor    string
	recursive bool // $recursiveRef of 2019-09: to the root of that resource
}

type unevaluatedRules struct{ properties, items *schemaNode }

// schemaResource represents a part of the document with its own identifier.
type schemaResource struct {
	place     schemaPlace
	anchors   map[string]schemaPlace // names of both kinds of anchors
	dynamic   map[string]*schemaNode
	root      *schemaNode
	recursive bool
}

type enumRule struct {
	values  []any
	strings map[string]bool // if all values are strings, and many
}

func newEnum(values []any) *enumRule {
	e := &enumRule{values: values}
	if len(values) <= 8 {
		return e
	}
	set := make(map[string]bool, len(values))
	for _, v := range values {
		s, ok := v.(string)
		if !ok {
			return e
		}
		set[s] = true
	}
	e.strings = set
	return e
}

func (n *enumRule) hasValue(e *evaluator, v any) bool {
	if n.strings != nil {
		s, ok := v.(string)
		return ok && n.strings[s]
	}
	for _, want := range n.values {
		if e.equalValues(v, want) {
			return true
		}
	}
	return false
}

// typeSet represents a set of JSON types.
type typeSet uint8

const (
	nullType typeSet = 1 << iota
	booleanType
	numberType
	integerType
	stringType
	arrayType
	objectType
)

var typeNames = [...]string{"null", "boolean", "number", "integer", "string", "array", "object"}

func typeNamed(name string) typeSet {
	for i, n := range typeNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

func (t typeSet) typeList() []string {
	var list []string
	for i, n := range typeNames {
		if t&(1<<i) != 0 {
			list = append(list, n)
		}
	}
	return list
}

// typeOf returns the type of a decoded value, or 0 if it is not a JSON value.
func typeOf(v any) typeSet {
	switch v.(type) {
	case string:
		return stringType
	case json.Number, float64:
		return numberType
	case bool:
		return booleanType
	case nil:
		return nullType
	case []any:
		return arrayType
	case map[string]any:
		return objectType
	}
	return 0
}

func (t typeSet) allowsValue(v any) bool {
	is := typeOf(v)
	return t&is != 0 || is == numberType && t&integerType != 0 && isInteger(v)
}
