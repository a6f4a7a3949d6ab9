// Package rules judges a program by its syntax tree: whether it does something that harmless programs never need,
// what it can touch, and how risky it is. It does not search the program's text: a comment or string that contains
// eval is not a finding. Programs in all languages are given as the same kind of tree, so that a rule can apply to
// several languages.
package rules

import "errors"

// Kind is the kind of a node in a SyntaxTree. No other kinds exist.
type Kind uint8

// The kinds of nodes, with their text and children. Trees do not contain parentheses, casts and types.
const (
	Other     Kind = iota // anything else; its children in order
	Name                  // a variable that is used or assigned; Text, Bind
	String                // Text is its value
	Template              // strings and expressions that are joined: `a${b}`, f"a{b}"
	Number                // Text as written
	Constant              // true null None this super
	RegExp                // Text as written
	Member                // object; Text is the name
	Index                 // object, key
	Slice                 // Text is the slice if it is constant, as in ::-1
	Call                  // callee, arguments: expressions, Spread, Property for a keyword
	New                   // the same
	Import                // Imported, any number; Text is the module
	Imported              // Text is the name there, * for the module itself, ** for all that it has; Bind
	Function              // Parameter, any number, then the body; Text, Bind; no text if anonymous
	Parameter             // its pattern and default; Text and Bind if it is a name. Also what catch binds
	Class                 // bases, members; Text, Bind
	Property              // value, or key and value if the key is computed; Text is the key
	Object                // Property, Spread, Function
	Array                 // its items; a list, tuple or set
	Loop                  // Text is for, while, do or comprehension
	Branch                // Text is if, case, catch or ?:
	Logical               // Text is the operator; left, right
	Binary                // Text is the operator; left, right
	Unary                 // Text is the operator; operand
	Assign                // Text is the operator, of for what a loop gives; target, value. Also declarations, which may have no value
	Delete                // operand
	Spread                // operand
	Await                 // operand
	Return                // operand, if any
	Throw                 // operand, if any
	kindCount
)

var kindNames = [kindCount]string{
	"other", "name", "string", "template", "number", "constant", "regexp", "member", "index", "slice", "call", "new", "import", "imported",
	"function", "parameter", "class", "property", "object", "array", "loop", "branch", "logical", "binary", "unary", "assign", "delete",
	"spread", "await", "return", "throw",
}

// String returns the kind's name, such as "call".
func (k Kind) String() string {
	if k < kindCount {
		return kindNames[k]
	}
	return "kind"
}

// KindOf returns the kind with this name, such as "call".
func KindOf(name string) (Kind, bool) {
	for k, n := range kindNames {
		if n == name {
			return Kind(k), true
		}
	}
	return Other, false
}

// TreeNode describes one node of a SyntaxTree.
type TreeNode struct {
	Kind       Kind
	Text       string
	Start, End int32 // bytes in the source
	Size       int32 // nodes of the subtree, itself among them
	Bind       int32 // which variable a name means, from 1 on; 0 for one that the program does not declare
}

// TreeLanguage distinguishes two families of languages: JavaScript with TypeScript, and Python.
type TreeLanguage uint8

// The families of languages.
const (
	Script TreeLanguage = iota // TypeScript, JavaScript
	Python
)

// SyntaxTree holds a program as a list of nodes in preorder: each node is followed by its children.
type SyntaxTree struct {
	Language TreeLanguage
	Source   string
	Nodes    []TreeNode
}

// Bounds on syntax trees. Trees that exceed them are refused before any rule examines them.
const (
	MaxNodes = 2_000_000
	maxDepth = 4000
)

// Errors for trees that the rules do not judge.
var (
	ErrTree  = errors.New("the syntax tree is invalid")
	ErrDeep  = errors.New("the program is nested too deeply")
	ErrLarge = errors.New("the program is too large to be judged")
)

// CheckStructure returns an error unless every node lies within its parent and the source code, and no node is nested too
// deeply.
func (t *SyntaxTree) CheckStructure() error {
	if len(t.Nodes) == 0 || len(t.Nodes) > MaxNodes || int(t.Nodes[0].Size) != len(t.Nodes) {
		return ErrTree
	}
	var ends []int32 // where the subtrees end that the node is in
	for i := range t.Nodes {
		n, at := &t.Nodes[i], int32(i)
		for len(ends) > 0 && ends[len(ends)-1] <= at {
			ends = ends[:len(ends)-1]
		}
		if n.Size < 1 || int(at)+int(n.Size) > len(t.Nodes) || len(ends) > 0 && at+n.Size > ends[len(ends)-1] ||
			n.Kind >= kindCount || n.Bind < 0 || int(n.Bind) > len(t.Nodes) || n.Start < 0 || n.End < n.Start || int(n.End) > len(t.Source) {
			return ErrTree
		}
		if ends = append(ends, at+n.Size); len(ends) > maxDepth {
			return ErrDeep
		}
	}
	return nil
}

// nthChild returns the n-th child of a node, or -1.
func (t *SyntaxTree) nthChild(i int32, n int) int32 {
	end := i + t.Nodes[i].Size
	for c := i + 1; c < end; c += t.Nodes[c].Size {
		if n == 0 {
			return c
		}
		n--
	}
	return -1
}

// childNodes yields the children of a node.
func (t *SyntaxTree) childNodes(i int32) func(func(int32) bool) {
	return func(yield func(int32) bool) {
		end := i + t.Nodes[i].Size
		for c := i + 1; c < end; c += t.Nodes[c].Size {
			if !yield(c) {
				return
			}
		}
	}
}

// subtreeNodes yields the nodes of a subtree, the root first.
func (t *SyntaxTree) subtreeNodes(i int32) func(func(int32) bool) {
	return func(yield func(int32) bool) {
		for c := i; c < i+t.Nodes[i].Size; c++ {
			if !yield(c) {
				return
			}
		}
	}
}

// hasKind reports whether i is a node of one of the kinds.
func (t *SyntaxTree) hasKind(i int32, kinds ...Kind) bool {
	if i < 0 {
		return false
	}
	for _, k := range kinds {
		if t.Nodes[i].Kind == k {
			return true
		}
	}
	return false
}

// sourceOf returns the source text of a node.
func (t *SyntaxTree) sourceOf(i int32) string { return t.Source[t.Nodes[i].Start:t.Nodes[i].End] }
