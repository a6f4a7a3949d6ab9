package extract

import (
	"slices"
	"strings"
)

// toFunction converts a TypeScript program to an exported function that returns the program's last expression. The
// program's imports stay before the function.
func (p *sourceProgram) toFunction(name string) ExtractedFunction {
	var imports, body strings.Builder
	from := 0
	for i, t := range p.tokens {
		if t.kind != word || t.text != "import" || t.depth > 0 || p.tokenAt(i+1).text == "(" || p.tokenAt(i+1).text == "." {
			continue
		}
		end := p.statementEnd(i)
		body.WriteString(p.editedText(from, t.start))
		imports.WriteString(strings.TrimSpace(p.code[t.start:end]) + "\n")
		from = end
	}
	p.addReturn(from)
	body.WriteString(p.editedText(from, len(p.code)))
	lines := indentCode(strings.TrimSpace(body.String()), false)
	code := imports.String()
	if code != "" {
		code += "\n"
	}
	return ExtractedFunction{Code: code + "export async function " + name + "(" + p.paramList() + ") {\n" + lines + "\n}\n", Params: p.params}
}

// statementEnd returns the offset at which the import statement ends that begins with token i.
func (p *sourceProgram) statementEnd(i int) int {
	for j := i; j < len(p.tokens); j++ {
		t := p.tokens[j]
		if t.depth == 0 && t.text == ";" {
			return t.end
		}
		if next := p.tokenAt(j + 1); t.kind == text && (next.text == "" || p.hasNewline(t.end, next.start)) {
			return t.end
		}
	}
	return len(p.code)
}

// addReturn makes the program return its last expression, unless it already has a return statement.
func (p *sourceProgram) addReturn(from int) {
	if slices.ContainsFunc(p.tokens, func(t sourceToken) bool { return t.kind == word && t.text == "return" && t.depth == 0 }) {
		return
	}
	last, first := -1, -1
	for i, t := range p.tokens {
		if t.start < from || t.depth > 0 || t.closes {
			continue
		}
		if first < 0 {
			first = i
		}
		before := p.tokenAt(i - 1)
		if i == first || before.text == ";" || p.hasNewline(before.end, t.start) && (before.kind != mark || before.closes) && t.kind != mark {
			last = i
		}
	}
	if last < 0 || p.tokenAt(last).text == ";" {
		return
	}
	t := p.tokenAt(last)
	switch {
	case t.text == "function" || t.text == "async" && p.tokenAt(last+1).text == "function":
		if name := p.nameAfter(last); last == first && name != "" {
			p.edits = append(p.edits, textEdit{len(p.code), len(p.code), "\nreturn await " + name + "();"})
		}
	case t.kind == word && statementKeywords[t.text]:
	default:
		p.edits = append(p.edits, textEdit{t.start, t.start, "return "})
	}
}

// nameAfter returns the name of the function whose declaration begins at token i.
func (p *sourceProgram) nameAfter(i int) string {
	for j := i; j < i+4; j++ {
		if t := p.tokenAt(j); t.kind == word && !reservedNames[t.text] && t.text != "async" {
			return t.text
		}
	}
	return ""
}

// toPythonFunction converts a Python program to a function.
func (p *sourceProgram) toPythonFunction(name string) ExtractedFunction {
	var imports []string
	result, awaits, last := false, false, -1
	for i, t := range p.tokens {
		begins := t.start == 0 || p.code[t.start-1] == '\n'
		switch {
		case begins && t.depth == 0 && (t.text == "import" || t.text == "from"):
			end := p.lineEnd(i)
			imports = append(imports, p.code[t.start:end])
			p.edits = append(p.edits, textEdit{t.start, end, ""})
		case begins && t.depth == 0:
			last = i
			result = result || t.text == "result"
		}
		result = result || t.kind == word && t.text == "result" && strings.HasSuffix(p.tokenAt(i+1).text, "=") && t.depth == 0
		awaits = awaits || t.text == "await"
	}
	head, tail := "def ", ""
	if awaits {
		head = "async def "
	}
	before := ""
	switch t := p.tokenAt(last); {
	case result:
		before, tail = "result = None\n", "\nreturn result"
	case last >= 0 && t.text != "" && !statementKeywords[t.text] && !(t.text == "match" && p.tokenAt(last+1).kind == word) &&
		!p.isAssignment(last):
		p.edits = append(p.edits, textEdit{t.start, t.start, "return "})
	case t.text == "def" && !awaits:
		tail = "\nreturn " + p.tokenAt(last+1).text + "()"
	}
	body := before + strings.TrimSpace(p.editedText(0, len(p.code))) + tail
	code := strings.Join(imports, "\n")
	if code != "" {
		code += "\n\n\n"
	}
	return ExtractedFunction{Code: code + head + name + "(" + p.paramList() + "):\n" + indentCode(body, true) + "\n", Params: p.params}
}

// lineEnd returns the offset at which the logical line that contains token i ends.
func (p *sourceProgram) lineEnd(i int) int {
	for j := i; j < len(p.tokens); j++ {
		next := p.tokenAt(j + 1)
		if next.text == "" {
			break
		}
		if next.depth == 0 && !next.closes && p.hasNewline(p.tokens[j].end, next.start) {
			return p.tokens[j].end
		}
	}
	return len(p.code)
}

// isAssignment reports whether the logical line that contains token i is an assignment.
func (p *sourceProgram) isAssignment(i int) bool {
	end := p.lineEnd(i)
	for j := i; j < len(p.tokens) && p.tokens[j].start < end; j++ {
		if t := p.tokens[j]; t.depth == 0 && t.kind == mark && strings.HasSuffix(t.text, "=") &&
			!slices.Contains([]string{"==", "!=", "<=", ">="}, t.text) {
			return true
		}
	}
	return false
}

// indentCode indents the lines of a program. It does not change lines that begin inside of a string.
func indentCode(code string, python bool) string {
	inside := map[int]bool{} // places of line breaks
	for _, t := range scanTokens(code, python) {
		for i := t.start; t.kind == text && i < t.end; i++ {
			if code[i] == '\n' {
				inside[i] = true
			}
		}
	}
	unit := "  "
	if python {
		unit = "    "
	}
	var b strings.Builder
	b.WriteString(unit)
	for i := 0; i < len(code); i++ {
		b.WriteByte(code[i])
		if code[i] == '\n' && !inside[i] && i+1 < len(code) && code[i+1] != '\n' {
			b.WriteString(unit)
		}
	}
	return b.String()
}

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

var (
	// statementKeywords lists the keywords that begin a statement, as opposed to an expression.
	statementKeywords = wordSet("const let var if for while do switch try throw import export function class type interface enum break continue return debugger " +
		"def with assert del pass raise global nonlocal from elif else except finally")
	// reservedNames lists the reserved words, which cannot be names of functions.
	reservedNames = wordSet("break case catch class const continue debugger default delete do else enum export extends false finally for function if import in instanceof new null " +
		"return super switch this throw true try typeof var void while with yield let static await async None True False and as assert def del elif except from global is lambda nonlocal not or pass raise")
)
