package tsc

import (
	"strconv"
	"strings"

	"github.com/microsoft/typescript-go/internal/ast"
)

// exported writes the code that defines what a module exports. It runs before the module's own code. Exported
// functions can be called at once. Exported values are evaluated when they are first read.
func (b *bodyWriter) exported() {
	for _, s := range b.exports {
		b.exportDefault(s)
	}
	b.edits.insert(0, "__exports.names = { "+strings.Join(b.names, ", ")+" }; ")
}

// export records that the module exports the variable local under name, so that __exports.names will have it.
func (b *bodyWriter) export(name, local string) {
	if b.unit.module && name != "default" {
		b.names = append(b.names, strconv.Quote(name)+": () => "+local)
	}
}

// exportNames records all names that a statement such as "export const a = 1" declares and exports.
func (b *bodyWriter) exportNames(s *ast.Node) {
	if s.Kind != ast.KindVariableStatement {
		if name := s.Name(); name != nil && ast.IsIdentifier(name) {
			b.export(name.Text(), name.Text())
		}
		return
	}
	for _, d := range s.AsVariableStatement().DeclarationList.AsVariableDeclarationList().Declarations.Nodes {
		b.exportPattern(d.Name())
	}
}

func (b *bodyWriter) exportPattern(name *ast.Node) {
	if ast.IsIdentifier(name) {
		b.export(name.Text(), name.Text())
		return
	}
	for _, e := range name.Elements() {
		if inner := e.Name(); inner != nil { // a hole has none
			b.exportPattern(inner)
		}
	}
}
