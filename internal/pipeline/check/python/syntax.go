package python

import "unicode/utf8"

// nodeClass stands for a class of syntax tree nodes in Python's module ast, such as Call.
type nodeClass uint8

// The node classes that the checks distinguish. Every other class is classOther. Of such a node, only the children
// are examined.
const (
	classOther nodeClass = iota
	classModule
	classFunctionDef
	classAsyncFunctionDef
	classLambda
	classClassDef
	classListComp
	classSetComp
	classDictComp
	classGeneratorExp
	classReturn
	classDelete
	classAssign
	classAugAssign
	classAnnAssign
	classFor
	classAsyncFor
	classWhile
	classIf
	classWith
	classAsyncWith
	classRaise
	classTry
	classImport
	classImportFrom
	classGlobal
	classNonlocal
	classExpr
	classBoolOp
	classNamedExpr
	classBinOp
	classUnaryOp
	classIfExp
	classDict
	classSet
	classAwait
	classCompare
	classCall
	classFormattedValue
	classJoinedStr
	classConstant
	classAttribute
	classSubscript
	classStarred
	className
	classList
	classTuple
	classSlice
	classArg
	classExceptHandler
	classMatchCase
	classMatchAs
	classMatchStar
	classMatchMapping
	classTypeVar
	classParamSpec
	classTypeVarTuple
	classLoad // the first that has neither fields nor a position, and is shared
	classStore
	classDel
	classAdd
	classSub
	classMult
	classDiv
	classMod
	classPow
	classFloorDiv
	classLShift
	classRShift
	classBitOr
	classBitXor
	classBitAnd
	classMatMult
	classAnd
	classOr
	classNot
	classUSub
	classUAdd
	classInvert
	classEq
	classNotEq
	classLt
	classLtE
	classGt
	classGtE
	classIs
	classIsNot
	classIn
	classNotIn
	classComplex // builtins.complex
	classCount
)

var classNames = [classCount]string{
	"", "Module", "FunctionDef", "AsyncFunctionDef", "Lambda", "ClassDef", "ListComp", "SetComp", "DictComp",
	"GeneratorExp", "Return", "Delete", "Assign",
	"AugAssign", "AnnAssign", "For", "AsyncFor", "While", "If", "With", "AsyncWith", "Raise", "Try", "Import",
	"ImportFrom", "Global", "Nonlocal", "Expr",
	"BoolOp", "NamedExpr", "BinOp", "UnaryOp", "IfExp", "Dict", "Set", "Await", "Compare", "Call", "FormattedValue",
	"JoinedStr", "Constant", "Attribute",
	"Subscript", "Starred", "Name", "List", "Tuple", "Slice", "arg", "ExceptHandler", "match_case", "MatchAs",
	"MatchStar", "MatchMapping", "TypeVar",
	"ParamSpec", "TypeVarTuple", "Load", "Store", "Del", "Add", "Sub", "Mult", "Div", "Mod", "Pow", "FloorDiv",
	"LShift", "RShift", "BitOr", "BitXor",
	"BitAnd", "MatMult", "And", "Or", "Not", "USub", "UAdd", "Invert", "Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is",
	"IsNot", "In", "NotIn", "",
}

// operatorTexts maps the classes of operators to the operators as written in source code.
var operatorTexts = [classCount]string{
	classAdd: "+", classSub: "-", classMult: "*", classDiv: "/", classMod: "%", classPow: "**", classFloorDiv: "//",
	classLShift: "<<", classRShift: ">>",
	classBitOr: "|", classBitXor: "^", classBitAnd: "&", classMatMult: "@", classAnd: "and", classOr: "or",
	classNot: "not", classUSub: "-", classUAdd: "+",
	classInvert: "~", classEq: "==", classNotEq: "!=", classLt: "<", classLtE: "<=", classGt: ">", classGtE: ">=",
	classIs: "is", classIsNot: "is not",
	classIn: "in", classNotIn: "not in",
}

// fieldLabel stands for an attribute of a syntax tree node in Python's module ast, such as func.
type fieldLabel uint8

// The fields that the checks distinguish. Every other field is fieldOther. The first four fields hold the position of
// a node.
const (
	fieldOther fieldLabel = iota
	fieldLine
	fieldColumn
	fieldEndLine
	fieldEndColumn
	fieldBody
	fieldName
	fieldNames
	fieldAsName
	fieldModule
	fieldLevel
	fieldID
	fieldContext
	fieldAttr
	fieldValue
	fieldValues
	fieldKeys
	fieldKey
	fieldElement
	fieldElements
	fieldFunc
	fieldArgs
	fieldArg
	fieldKeywords
	fieldTarget
	fieldTargets
	fieldIter
	fieldGenerators
	fieldConditions
	fieldTest
	fieldElse
	fieldOp
	fieldOps
	fieldLeft
	fieldRight
	fieldComparators
	fieldOperand
	fieldSlice
	fieldLower
	fieldUpper
	fieldStep
	fieldDecorators
	fieldReturns
	fieldBases
	fieldPositionOnly
	fieldKeywordOnly
	fieldVarArg
	fieldVarKeyword
	fieldDefaults
	fieldKeywordDefaults
	fieldAnnotation
	fieldTypeParams
	fieldType
	fieldHandlers
	fieldItems
	fieldContextExpr
	fieldOptionalVars
	fieldException
	fieldCause
	fieldFormat
	fieldRest
	fieldLabels
)

var labelNames = [fieldLabels]string{
	"", "lineno", "col_offset", "end_lineno", "end_col_offset", "body", "name", "names", "asname", "module", "level",
	"id", "ctx", "attr", "value", "values",
	"keys", "key", "elt", "elts", "func", "args", "arg", "keywords", "target", "targets", "iter", "generators", "ifs",
	"test", "orelse", "op", "ops", "left",
	"right", "comparators", "operand", "slice", "lower", "upper", "step", "decorator_list", "returns", "bases",
	"posonlyargs", "kwonlyargs", "vararg", "kwarg",
	"defaults", "kw_defaults", "annotation", "type_params", "type", "handlers", "items", "context_expr",
	"optional_vars", "exc", "cause", "format_spec", "rest",
}

// valueSort is the kind of a value in a pickled syntax tree.
type valueSort uint8

const (
	sortNone      valueSort = iota
	sortNode                // one of nodes
	sortList                // one of lists
	sortText                // one of texts
	sortBytes               // one of texts
	sortTrue                //
	sortFalse               //
	sortEllipsis            //
	sortInteger             // the number itself
	sortLong                // one of integers
	sortHuge                // an integer of more than 63 bits
	sortFloat               // one of floats
	sortImaginary           // one of floats
	sortClass               // a class; operators and contexts are only this
	sortFresh               // a node without its fields, of a class
	sortNothings            // a tuple of None
	sortPair                // a tuple of two numbers; the second is one of floats
	sortDict                // the fields of a node
)

// attrValue holds the value of a node's field as the number at. The field sort says what this number means: for
// example, the index of another node.
type attrValue struct {
	sort valueSort
	at   int32
}

// nodeSpan holds the position of a node. Lines count from 1, columns in bytes from 0. The zero value means that the
// node has no position.
type nodeSpan struct{ line, column, endLine, endColumn int32 }

type nodeField struct {
	name  fieldLabel
	value attrValue
}

// syntaxNode describes one node of a syntax tree.
type syntaxNode struct {
	class        nodeClass
	depth        int32 // of its subtree
	first, count int32 // its fields
	nodeSpan
}

// nodeID is the index of a node. 0 means none.
type nodeID = int32

// textID is the index of a text in the tree's table. Index 0 is the empty text. Equal texts have the same index.
type textID = int32

// syntaxTree holds a syntax tree as Python's parser makes it. Every node except the root has exactly one parent.
type syntaxTree struct {
	root     nodeID
	nodes    []syntaxNode
	fields   []nodeField
	lists    [][]attrValue
	texts    []string
	places   map[string]textID
	integers []int64
	floats   []float64
}

// fieldValue returns a field of a node.
func (s *syntaxTree) fieldValue(id nodeID, name fieldLabel) attrValue {
	n := &s.nodes[id]
	for i := n.first; i < n.first+n.count; i++ {
		if s.fields[i].name == name {
			return s.fields[i].value
		}
	}
	return attrValue{}
}

// childNode returns the node in a field, or 0.
func (s *syntaxTree) childNode(id nodeID, name fieldLabel) nodeID {
	return nodeOf(s.fieldValue(id, name))
}

func nodeOf(v attrValue) nodeID {
	if v.sort != sortNode {
		return 0
	}
	return v.at
}

// fieldList returns the list in a field.
func (s *syntaxTree) fieldList(id nodeID, name fieldLabel) []attrValue {
	if v := s.fieldValue(id, name); v.sort == sortList {
		return s.lists[v.at]
	}
	return nil
}

// fieldText returns the text ID in a field, or 0.
func (s *syntaxTree) fieldText(id nodeID, name fieldLabel) textID {
	if v := s.fieldValue(id, name); v.sort == sortText {
		return v.at
	}
	return 0
}

// fieldString returns the text in a field.
func (s *syntaxTree) fieldString(id nodeID, name fieldLabel) string {
	return s.texts[s.fieldText(id, name)]
}

// fieldSymbol returns the class of the operator or context in a field, such as Add or Load.
func (s *syntaxTree) fieldSymbol(id nodeID, name fieldLabel) nodeClass {
	if v := s.fieldValue(id, name); v.sort == sortClass {
		return nodeClass(v.at)
	}
	return classOther
}

func (s *syntaxTree) classOf(id nodeID) nodeClass { return s.nodes[id].class }

// childNodes yields the children of a node, in source order except for decorators.
func (s *syntaxTree) childNodes(id nodeID) func(func(nodeID) bool) {
	return func(yield func(nodeID) bool) {
		n := &s.nodes[id]
		for _, f := range s.fields[n.first : n.first+n.count] {
			switch f.value.sort {
			case sortNode:
				if !yield(f.value.at) {
					return
				}
			case sortList:
				for _, item := range s.lists[f.value.at] {
					if item.sort == sortNode && !yield(item.at) {
						return
					}
				}
			}
		}
	}
}

// internText returns the ID of a text. A new text is added to the tree's table of texts.
func (s *syntaxTree) internText(text string) textID {
	at, ok := s.places[text]
	if !ok {
		at = textID(len(s.texts))
		s.texts = append(s.texts, text)
		s.places[text] = at
	}
	return at
}

// isText reports whether a node is a string literal.
func (s *syntaxTree) isText(id nodeID) bool {
	return id != 0 && s.classOf(id) == classConstant && s.fieldValue(id, fieldValue).sort == sortText
}

func isFunction(c nodeClass) bool {
	return c == classFunctionDef || c == classAsyncFunctionDef || c == classLambda
}

func isComprehension(c nodeClass) bool { return classListComp <= c && c <= classGeneratorExp }

// parameterNodes returns the nodes of a function's parameters.
func (s *syntaxTree) parameterNodes(arguments nodeID) []nodeID {
	var found []nodeID
	for _, name := range [...]fieldLabel{fieldPositionOnly, fieldArgs, fieldKeywordOnly} {
		for _, item := range s.fieldList(arguments, name) {
			found = appendNode(found, nodeOf(item))
		}
	}
	return appendNode(appendNode(found, s.childNode(arguments, fieldVarArg)), s.childNode(arguments, fieldVarKeyword))
}

func appendNode(list []nodeID, id nodeID) []nodeID {
	if id == 0 {
		return list
	}
	return append(list, id)
}

// countRunes returns the length of a text in code points.
func countRunes(text string) int { return utf8.RuneCountInString(text) }
