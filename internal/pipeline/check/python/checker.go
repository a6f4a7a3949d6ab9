// Package python checks a Python program against the tools that it names. Python itself parses the program, in a
// sandbox, because parsing untrusted code is too risky on the host. This package judges the parser's report.
package python

import (
	"context"
	"errors"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
)

// Parser parses code with an interpreter in a sandbox; see internal/sandbox/guest/python. Its errors are *core.Error,
// or the context's.
type Parser interface {
	Parse(ctx context.Context, code string) (core.Parsed, error)
}

// Source holds a program as it was written.
type Source struct {
	Code   string
	Level  rules.Level
	Skills source.Library // nil has none
}

// Checked holds a program that may run.
type Checked struct {
	Code       string
	Namespaces []core.Namespace // the servers it names; all of them if Unknown
	Tools      []*core.Tool     // those it can reach; all of them if that is unknown
	Unknown    bool             // the program computes names, so that Tools are all
	Skills     []*Skill         // that it imports, and those that they import
	Warnings   []string
	Report     rules.Report // of the program alone

	lines, indent int // before the program, and before each of its lines
}

// Locate converts a line and column of Code to those of the program as it was written. All are 1-based; columns count
// code points.
func (c Checked) Locate(line, column int) (int, int) { return line + c.lines, column + c.indent }

// Checker checks programs. It is safe for concurrent use.
type Checker struct {
	parser   Parser
	builtins map[string]bool
	made     source.Memo[*core.Server, core.Namespace]
	params   source.Memo[*core.Tool, bindings.Parameters]
	skills   source.Memo[skillKey, *program]
}

// New returns a checker that parses programs with p.
func New(p Parser) *Checker {
	const servers, tools = 512, 4096
	return &Checker{
		parser: p, builtins: bindings.Builtins(),
		made: source.NewMemo[*core.Server, core.Namespace](servers), params: source.NewMemo[*core.Tool, bindings.Parameters](tools), skills: source.NewMemo[skillKey, *program](256),
	}
}

// program holds one program while it is checked.
type program struct {
	checker *Checker
	written string // as it was sent
	code    string
	tools   *core.Toolset
	failed  *syntaxError
	facts   *facts
	scopes  *scopes
	tree    *rules.Tree
	report  rules.Report
	lines   int
	indent  int
	reach   *reach
}

// maxCode bounds the code that is parsed, in bytes.
const maxCode = 4 << 20

// Check checks a program against the tools it may see. Its error has the kind syntax, policy, type, tool_not_found,
// limit or cancelled if the cause is the program or ctx. Any other error is the parser's.
func (c *Checker) Check(ctx context.Context, src Source, tools *core.Toolset) (Checked, *core.Error) {
	p, refusal := c.judged(ctx, src, tools)
	if refusal != nil {
		return Checked{}, refusal
	}
	l := c.linker(src, tools)
	if refusal := l.uses(ctx, p, nil); refusal != nil {
		return Checked{}, refusal
	}
	return Checked{
		Code: p.code, Namespaces: p.namespaces(), Tools: p.reach.list(tools), Unknown: p.reach.unknown, lines: p.lines, indent: p.indent,
		Skills: l.modules(p), Warnings: append(p.report.Warnings(src.Level, p.place), p.advice()...), Report: p.report,
	}, nil
}

// judged returns the program if it is correct, apart from the skills that it imports.
func (c *Checker) judged(ctx context.Context, src Source, tools *core.Toolset) (*program, *core.Error) {
	if len(src.Code) > maxCode {
		return nil, core.Errorf(core.KindLimit, "gate.python", "the program has more than 4 MB").
			WithHint("put data into a workspace file and read it with open()")
	}
	return c.parse(ctx, src.Code, tools, func(p *program) *core.Error {
		if refusal := p.judgeTree(src.Level); refusal != nil {
			return refusal
		}
		p.reach = p.reached()
		return p.refuse(p.judge())
	})
}

// parse finds the program in the text, parses it, and judges it while the interpreter compiles it. Text that does not
// compile is refused, whatever the judgement.
func (c *Checker) parse(ctx context.Context, code string, tools *core.Toolset, judge func(*program) *core.Error) (*program, *core.Error) {
	var first *program
	for _, piece := range source.Pieces(code, `"""`, `'''`) {
		text, indent := dedented(strings.ReplaceAll(piece.Code, "\r\n", "\n"))
		p := &program{checker: c, written: code, code: text, tools: tools, lines: piece.Lines, indent: indent}
		refusal, err := p.read(ctx, judge)
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil, core.Errorf(core.KindCancelled, "gate.python", "the execution was cancelled")
		}
		if err != nil {
			return nil, failure(err)
		}
		if p.failed == nil {
			return p, refusal
		}
		if first == nil {
			first = p
		}
	}
	return nil, first.syntax()
}

// read parses the text and judges it. If the text is not a program, failed holds the reason.
func (p *program) read(ctx context.Context, judge func(*program) *core.Error) (refusal *core.Error, err error) {
	parsed, err := p.checker.parser.Parse(ctx, p.code)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(p.code, "\n")
	known, err := decode(parsed.Known, len(lines))
	if err != nil {
		return nil, err
	}
	if p.failed = known.Error; p.failed != nil {
		return nil, nil
	}
	if err := p.look(lines, known, parsed.Tree); err != nil {
		refusal = failure(err)
	} else if code, executes := p.withImports(); executes {
		if _, err := parsed.Compiled(); err != nil {
			return nil, err
		}
		p.code = code
		return p.read(ctx, judge)
	} else {
		refusal = judge(p)
	}
	told, err := parsed.Compiled()
	if err != nil {
		return nil, err
	}
	compiled, err := decode(told, len(lines))
	if err != nil {
		return nil, err
	}
	p.failed = compiled.Error
	return refusal, nil
}

// look reads the program's facts and tree from the interpreter's report.
func (p *program) look(lines []string, known *told, pickle []byte) error {
	if known.Large {
		return rules.ErrLarge
	}
	s, err := unpickle(pickle)
	if err != nil {
		return err
	}
	scopes := scopesOf(s)
	if p.tree, err = treeOf(p.code, scopes); err != nil {
		return err
	}
	p.scopes = scopes
	p.facts = factsOf(lines, scopes, known)
	if !p.facts.short() {
		return errMuch
	}
	return nil
}

// dedented removes the white space that all lines of a program begin with.
func dedented(text string) (string, int) {
	lines := strings.Split(text, "\n")
	common, found := "", false
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lead := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if !found {
			common, found = lead, true
		}
		for !strings.HasPrefix(lead, common) {
			common = common[:len(common)-1]
		}
	}
	if common == "" {
		return text, 0
	}
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, common)
	}
	return strings.Join(lines, "\n"), len(common)
}

// namespaces returns the servers that the guest creates for a program.
func (p *program) namespaces() []core.Namespace {
	var all []core.Namespace
	for _, s := range p.tools.Servers {
		if p.reach.unknown || p.reach.servers[s] != nil {
			all = append(all, p.checker.made.Get(s, func() core.Namespace { return p.checker.namespaceOf(s) }))
		}
	}
	return all
}

// global returns the name under which programs find a server without an import, or "" if the environment uses that
// name itself.
func (c *Checker) global(s *core.Server) string {
	if c.builtins[s.Python] {
		return ""
	}
	return s.Python
}

// namespaceOf returns a server as the guest creates it.
func (c *Checker) namespaceOf(s *core.Server) core.Namespace {
	n := core.Namespace{Server: s.Name, Global: c.global(s)}
	for _, spelling := range []string{s.Python, s.Name, s.TypeScript} {
		if spelling != "" && !contains(n.Modules, spelling) {
			n.Modules = append(n.Modules, spelling)
		}
	}
	for _, t := range s.Tools {
		n.Functions = append(n.Functions, functionOf(t, c.parameters(t)))
	}
	return n
}

func (c *Checker) parameters(t *core.Tool) bindings.Parameters {
	return c.params.Get(t, func() bindings.Parameters { return bindings.ParametersOf(t) })
}

func functionOf(t *core.Tool, params bindings.Parameters) core.Function {
	f := core.Function{Name: t.Python, Tool: t.Name}
	renamed := false
	var keywords []string
	for i, p := range params.List {
		f.Params = append(f.Params, p.Name)
		keywords = append(keywords, p.Keyword)
		renamed = renamed || p.Keyword != p.Name
		if p.Snake != "" {
			if f.Also == nil {
				f.Also = map[string]string{}
			}
			f.Also[p.Snake] = p.Name
		}
		if p.Null {
			f.Nulls = append(f.Nulls, p.Name)
		}
		if i == 0 {
			f.Object = p.Object
		}
	}
	if renamed {
		f.Keywords = keywords
	}
	return f
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}
