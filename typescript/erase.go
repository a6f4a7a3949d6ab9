package tsc

import (
	"slices"
	"strings"

	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/checker"
	"github.com/microsoft/typescript-go/internal/scanner"
)

// direct returns the body of a program by cutting out its TypeScript syntax, so that the rest keeps its position. It
// reports false if the compiler's printer must be used instead: for enums, namespaces, parameter properties,
// decorators, using and named exports, and where a cut could change the meaning of the rest. Tests check that cutting
// and printing give equivalent code.
func (u *unit) direct(types *checker.Checker, found []*ast.Diagnostic) (string, *positionMap, bool) {
	text := u.file.Text()
	if slices.ContainsFunc(found, isGrammar) || u.file.SubtreeFacts()&(ast.SubtreeContainsESNext|ast.SubtreeContainsJsx) != 0 || !plainText(text) {
		return "", nil, false
	}
	b := &bodyWriter{unit: u, file: u.file, source: func(pos int) (int, bool) { return pos, true }}
	e := &eraser{body: b, text: text, resolver: types.GetEmitResolver(), script: ast.IsInJSFile(u.file.AsNode())}
	e.write()
	if e.refused || b.restored != len(u.returns) {
		return "", nil, false
	}
	code, shift := b.edits.apply(text)
	if code += "\n"; !plainText(code) { // the last line may be a comment
		return "", nil, false
	}
	p := &positionMap{code: newCodeTable(code), shift: compose(shift, u.shift, u.src.shift), text: u.src.lines}
	return code, p, true
}

// isGrammar reports whether a diagnostic is a syntax error. Their codes are below 2000.
func isGrammar(d *ast.Diagnostic) bool { return d.Code() < 2000 }

// plainText reports whether a JavaScript engine divides a text into tokens and lines as the compiler does. The text
// must not contain HTML comments, comments that rename the source, or line breaks other than \n.
func plainText(text string) bool {
	for _, mark := range []string{"<!--", "-->", "sourceURL", "sourceMappingURL", "\r", "\u2028", "\u2029"} {
		if strings.Contains(text, mark) {
			return false
		}
	}
	return true
}

// eraser cuts the types out of a program by editing its body.
type eraser struct {
	body     *bodyWriter
	text     string
	resolver *checker.EmitResolver
	script   bool  // JavaScript has nothing to cut
	ends     []int // ends of statements that a line break ends and a cut would continue
	refused  bool
}

func (e *eraser) write() {
	b := e.body
	e.mark()
	for _, s := range b.file.Statements.Nodes {
		if !plainStatement(s) {
			e.refused = true
			return
		}
		if !e.whole(s) {
			b.statement(s)
		}
	}
	b.result()
	b.file.AsNode().ForEachChild(e.visit)
	for _, at := range e.ends {
		b.edits.insert(at, ";")
	}
}

// plainStatement reports whether the code for a statement is the same, whatever its names refer to. It is not the
// same for "export default x", for example, because x may be a type or a value.
func plainStatement(s *ast.Node) bool {
	switch s.Kind {
	case ast.KindExportDeclaration:
		return false
	case ast.KindExportAssignment: // the name may be that of a type
		return !s.AsExportAssignment().IsExportEquals && !ast.IsIdentifier(ast.SkipOuterExpressions(s.Expression(), ast.OEKParentheses|ast.OEKAssertions))
	}
	return s.Flags&ast.NodeFlagsReparsed == 0
}

// mark lets the type checker mark the imports that the program uses as values. The other imports can be dropped.
func (e *eraser) mark() {
	imports := func(s *ast.Node) bool { return s.Kind == ast.KindImportDeclaration }
	if !e.script && slices.ContainsFunc(e.body.file.Statements.Nodes, imports) {
		e.resolver.MarkLinkedReferencesRecursively(e.body.file)
		e.body.elided = func(n *ast.Node) bool {
			return n.Kind == ast.KindImportSpecifier && n.IsTypeOnly() || !e.resolver.IsReferencedAliasDeclaration(n)
		}
	}
}

// whole cuts n if it is a statement or class member that leaves no code, such as an interface, an overload or an
// import of types. It reports whether it did.
func (e *eraser) whole(n *ast.Node) bool {
	if e.script || !e.isType(n) {
		return false
	}
	e.body.edits.replace(e.start(n), n.End(), ";")
	return true
}

func (e *eraser) isType(n *ast.Node) bool {
	switch n.Kind {
	case ast.KindInterfaceDeclaration, ast.KindTypeAliasDeclaration, ast.KindIndexSignature:
		return true
	case ast.KindFunctionDeclaration, ast.KindMethodDeclaration, ast.KindConstructor:
		return ast.NodeIsMissing(n.Body())
	case ast.KindImportDeclaration:
		return e.body.unneeded(n)
	case ast.KindVariableStatement, ast.KindClassDeclaration:
		return ast.HasSyntacticModifier(n, ast.ModifierFlagsAmbient)
	case ast.KindPropertyDeclaration, ast.KindGetAccessor, ast.KindSetAccessor:
		return ast.HasSyntacticModifier(n, ast.ModifierFlagsAmbient|ast.ModifierFlagsAbstract)
	}
	return false
}

func (e *eraser) visit(n *ast.Node) bool {
	switch {
	case e.refused:
		return true
	case n.Flags&ast.NodeFlagsReparsed != 0:
	case needsPrinter(n):
		e.refused = true
	case e.script:
		e.body.expression(n)
		n.ForEachChild(e.visit)
	case e.isType(n):
		if n.Parent.Kind != ast.KindSourceFile { // they were cut before
			e.whole(n)
		}
	case n.Kind == ast.KindImportDeclaration:
	default:
		e.body.expression(n)
		if n.SubtreeFacts()&ast.SubtreeContainsTypeScript != 0 {
			e.cutIn(n)
			e.ended(n)
		}
		n.ForEachChild(e.inner)
	}
	return e.refused
}

// needsPrinter reports whether the compiler transforms a node, so that cutting out types is not enough.
func needsPrinter(n *ast.Node) bool {
	switch n.Kind {
	case ast.KindPropertyDeclaration:
		return ast.HasSyntacticModifier(n, ast.ModifierFlagsAccessor)
	case ast.KindGetAccessor, ast.KindSetAccessor:
		return ast.NodeIsMissing(n.Body()) && !ast.HasSyntacticModifier(n, ast.ModifierFlagsAmbient|ast.ModifierFlagsAbstract)
	}
	return false
}

// inner visits a child node, unless it is a type. If cutIn does not know how to cut types out of the parent node,
// inner makes the eraser give up, and the compiler's printer is used instead.
func (e *eraser) inner(n *ast.Node) bool {
	if ast.IsTypeNode(n) && n.Kind != ast.KindExpressionWithTypeArguments || n.Kind == ast.KindTypeParameter {
		e.refused = e.refused || !holdsTypes(n.Parent)
		return e.refused
	}
	return e.visit(n)
}

// holdsTypes reports whether n is a kind of node whose types cutIn cuts.
func holdsTypes(n *ast.Node) bool {
	switch n.Kind {
	case ast.KindAsExpression, ast.KindSatisfiesExpression, ast.KindTypeAssertionExpression, ast.KindVariableDeclaration, ast.KindParameter, ast.KindPropertyDeclaration,
		ast.KindFunctionDeclaration, ast.KindFunctionExpression, ast.KindArrowFunction, ast.KindMethodDeclaration, ast.KindConstructor, ast.KindGetAccessor, ast.KindSetAccessor,
		ast.KindClassDeclaration, ast.KindClassExpression, ast.KindExpressionWithTypeArguments, ast.KindCallExpression, ast.KindNewExpression, ast.KindTaggedTemplateExpression,
		ast.KindHeritageClause: // one of implements
		return true
	}
	return false
}

// cutIn cuts the TypeScript syntax that belongs to the node n itself, not to its children.
func (e *eraser) cutIn(n *ast.Node) {
	switch n.Kind {
	case ast.KindAsExpression, ast.KindSatisfiesExpression:
		e.assertion(n)
	case ast.KindNonNullExpression:
		e.refused = e.refused || ast.IsNumericLiteral(n.Expression()) // 0!.x is not 0.x
		e.cut(n.Expression().End(), n.End())
	case ast.KindTypeAssertionExpression:
		e.body.edits.replace(e.start(n), e.start(n.Expression()), " ")
	case ast.KindVariableDeclaration:
		e.token(n.AsVariableDeclaration().ExclamationToken)
		e.annotation(n.Type())
	case ast.KindParameter:
		e.parameter(n)
	case ast.KindFunctionDeclaration, ast.KindFunctionExpression, ast.KindArrowFunction, ast.KindMethodDeclaration, ast.KindConstructor,
		ast.KindGetAccessor, ast.KindSetAccessor:
		e.function(n)
	case ast.KindPropertyDeclaration:
		e.modifiers(n)
		e.token(n.PostfixToken())
		e.annotation(n.Type())
	case ast.KindClassDeclaration, ast.KindClassExpression:
		e.modifiers(n)
		e.list(n.TypeParameterList())
	case ast.KindHeritageClause:
		if n.AsHeritageClause().Token == ast.KindImplementsKeyword {
			e.cut(e.start(n), n.End())
		}
	case ast.KindExpressionWithTypeArguments:
		e.refused = e.refused || n.Parent.Kind != ast.KindHeritageClause
		if n.Parent.Kind == ast.KindHeritageClause && n.Parent.AsHeritageClause().Token == ast.KindExtendsKeyword {
			e.list(n.TypeArgumentList())
		}
	case ast.KindCallExpression, ast.KindNewExpression, ast.KindTaggedTemplateExpression:
		e.list(n.TypeArgumentList())
	case ast.KindEnumDeclaration, ast.KindModuleDeclaration, ast.KindImportEqualsDeclaration, ast.KindNamespaceExportDeclaration,
		ast.KindExportDeclaration, ast.KindDecorator:
		e.refused = true
	}
}

// assertion cuts "as T" or "satisfies T" after an expression. It gives up on the program if a binary operator
// follows, because the cut could then change how the operands are grouped.
func (e *eraser) assertion(n *ast.Node) {
	x := n.Expression()
	if p := n.Parent; p.Kind == ast.KindBinaryExpression && p.AsBinaryExpression().Left == n && !ast.IsLeftHandSideExpression(x) {
		e.refused = true
	}
	e.cut(x.End(), n.End())
}

func (e *eraser) parameter(n *ast.Node) {
	if n.Modifiers() != nil {
		e.refused = true // a parameter that is a property
		return
	}
	if ast.IsThisParameter(n) {
		end := e.skip(n.End())
		if end < len(e.text) && e.text[end] == ',' {
			end++
		} else {
			end = n.End()
		}
		e.cut(e.start(n), end)
		return
	}
	e.token(n.QuestionToken())
	e.annotation(n.Type())
}

func (e *eraser) function(n *ast.Node) {
	e.modifiers(n)
	e.list(n.TypeParameterList())
	if n.Kind == ast.KindMethodDeclaration {
		e.token(n.PostfixToken())
	}
	switch t := n.Type(); {
	case t == nil:
	case n.Kind == ast.KindArrowFunction: // no line break may stand before =>
		e.body.edits.replace(e.colon(t), e.start(n.AsArrowFunction().EqualsGreaterThanToken), " ")
	default:
		e.annotation(t)
	}
	if n.Kind == ast.KindArrowFunction && n.TypeParameterList() != nil && strings.ContainsAny(e.text[n.Pos():n.ParameterList().Pos()], "\n") {
		e.refused = true // nor one after async
	}
}

// modifiers cuts the modifiers that JavaScript does not have, such as private. If a class member begins with such a
// modifier, a semicolon replaces it, because without the modifier the member could continue the previous one.
func (e *eraser) modifiers(n *ast.Node) {
	for i, m := range n.ModifierNodes() {
		switch m.Kind {
		case ast.KindPublicKeyword, ast.KindPrivateKeyword, ast.KindProtectedKeyword, ast.KindAbstractKeyword, ast.KindOverrideKeyword, ast.KindReadonlyKeyword:
			with := ""
			if i == 0 && ast.IsClassElement(n) {
				with = ";"
			}
			e.body.edits.replace(e.start(m), m.End(), with)
		case ast.KindExportKeyword, ast.KindDefaultKeyword, ast.KindAsyncKeyword, ast.KindStaticKeyword:
		default:
			e.refused = true
		}
	}
}

// ended records the end of a statement that has no semicolon. A later cut could otherwise join it with the next line.
func (e *eraser) ended(n *ast.Node) {
	switch n.Kind {
	case ast.KindExpressionStatement, ast.KindVariableStatement, ast.KindReturnStatement, ast.KindThrowStatement, ast.KindExportAssignment, ast.KindPropertyDeclaration:
		if e.text[n.End()-1] != ';' {
			e.ends = append(e.ends, n.End())
		}
	}
}

// annotation cuts a type with its colon.
func (e *eraser) annotation(t *ast.Node) {
	if t != nil {
		e.cut(e.colon(t), t.End())
	}
}

func (e *eraser) colon(t *ast.Node) int {
	at := t.Pos() - 1
	if at < 0 || e.text[at] != ':' {
		e.refused = true
		return t.Pos()
	}
	return at
}

func (e *eraser) token(t *ast.Node) {
	if t != nil {
		e.cut(e.start(t), t.End())
	}
}

// list cuts type parameters or type arguments with their angle brackets.
func (e *eraser) list(l *ast.NodeList) {
	if l == nil {
		return
	}
	from, to := l.Pos()-1, e.skip(l.End())
	if to < len(e.text) && e.text[to] == ',' {
		to = e.skip(to + 1)
	}
	if from < 0 || e.text[from] != '<' || to >= len(e.text) || e.text[to] != '>' {
		e.refused = true
		return
	}
	e.cut(from, to+1)
}

// cut removes a range of text. It leaves a blank if two words would otherwise join.
func (e *eraser) cut(from, to int) {
	with := ""
	if from > 0 && to < len(e.text) && isWord(e.text[from-1]) && isWord(e.text[to]) {
		with = " "
	}
	e.body.edits.replace(from, to, with)
}

func isWord(c byte) bool {
	return c >= 0x80 || c == '_' || c == '$' || c == '\\' || c == '#' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func (e *eraser) start(n *ast.Node) int { return startOf(e.body.file, n) }

func (e *eraser) skip(pos int) int { return scanner.SkipTrivia(e.text, pos) }

// compose returns a map with the combined effect of several maps, which belong to successive edits of a text. The
// maps are passed in reverse order: that of the last edit is the first argument.
func compose(maps ...offsets) offsets {
	all := maps[0]
	for _, next := range maps[1:] {
		all = all.then(next)
	}
	return all
}

// then returns the map that has the effect of applying the map o first and the map next to the result.
func (o offsets) then(next offsets) offsets {
	if len(o) == 0 {
		return next
	}
	var both offsets
	for i, p := range o {
		if p.inserted {
			both = append(both, piece{p.start, next.back(p.old), true})
			continue
		}
		end := -1 // of the run, in the text between; open for the last one
		if i+1 < len(o) {
			end = p.old + o[i+1].start - p.start
		}
		both = append(both, next.within(p, end)...)
	}
	return both
}

// within returns the offset map for a run of text, which was copied out of a larger text after that had been edited.
// The receiver o maps offsets of the larger text back to the original text. The argument end is the offset in the
// larger text at which the run ends. If it is negative, the run extends to the end of that text.
func (o offsets) within(run piece, end int) offsets {
	first := piece{run.start, o.back(run.old), false}
	var pieces offsets
	for _, p := range o {
		switch {
		case p.start <= run.old:
			first = piece{run.start, o.back(run.old), p.inserted}
		case end < 0 || p.start < end:
			pieces = append(pieces, piece{run.start + p.start - run.old, p.old, p.inserted})
		}
	}
	return append(offsets{first}, pieces...)
}
