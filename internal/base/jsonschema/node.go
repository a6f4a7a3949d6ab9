package jsonschema

import "encoding/json"

// schemaNode represents one compiled subschema. Rules for rare keywords are behind pointers to save memory, because
// most nodes have little more than a type.
type schemaNode struct {
	resource  *schemaResource
	never     bool    // whether this is the schema false
	refAlone  bool    // whether only ref counts, because drafts before 2019-09 ignore keywords next to $ref
	types     typeSet // allowed types; 0 allows all types
	ref       *schemaNode
	constant  *any
	enum      *enumRule
	object    *objectRules
	array     *arrayRules
	text      *textRules
	number    *numberRules
	applied   *appliedRules
	uneval    *unevaluatedRules
	anyResult bool // whether this is the schema true
}

// Nodes of the schemas true, which accepts every value, and false, which accepts no value.
var (
	anyNode  = &schemaNode{anyResult: true}
	noneNode = &schemaNode{never: true}
)

type objectRules struct {
	least, most   int
	required      []string
	properties    map[string]*schemaNode
	names         []string // keys of properties, sorted
	patterns      []patternRule
	additional    *schemaNode // schema of all other properties; nil accepts any value
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
	node     *schemaNode // schema for the whole object; may be nil
}

type arrayRules struct {
	least, most  int
	unique       bool
	prefix       []*schemaNode
	rest         *schemaNode // schema of the items after prefix; nil accepts any value
	restKeyword  Keyword     // keyword that defines rest
	contains     *schemaNode
	leastContain int
	mostContain  int
	containEvals bool // whether items that match contains count as evaluated
	countContain bool // whether the schema has minContains
}

type textRules struct {
	least, most int
	pattern     *compiledPattern
	formatName  string
	format      func(string) error // check for the format; nil if the format is not asserted
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
	recursive bool // whether this is a $recursiveRef of draft 2019-09, which refers to the root of a resource
}

type unevaluatedRules struct{ properties, items *schemaNode }

// schemaResource represents a part of the document that has its own identifier.
type schemaResource struct {
	place     schemaPlace
	anchors   map[string]schemaPlace // subschemas by anchor name, for ordinary and dynamic anchors
	dynamic   map[string]*schemaNode
	root      *schemaNode
	recursive bool
}

type enumRule struct {
	values  []any
	strings map[string]bool // set of the values; nil unless there are more than 8 and all are strings
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
