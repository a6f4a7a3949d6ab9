// Package python checks a Python program against the tools that it names. The program is parsed by a Python
// interpreter in a sandbox, because parsing untrusted code on the host would be too risky. This package judges the
// syntax tree and the facts that the interpreter reports.
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

// CodeParser parses code with an interpreter in a sandbox; see internal/sandbox/guest/python. Its errors are *core.Error,
// or the context's.
type CodeParser interface {
	Parse(ctx context.Context, code string) (core.ParsedProgram, error)
}

// ProgramSource holds a program as it was sent, and the settings for its check.
type ProgramSource struct {
	Code   string
	Level  rules.StrictnessLevel
	Skills source.SkillLibrary // nil has none
}

// CheckedProgram describes a program that has passed the check.
type CheckedProgram struct {
	Code       string
	Namespaces []core.ServerNamespace // the servers it names; all of them if Unknown
	Tools      []*core.Tool           // those it can reach; all of them if that is unknown
	Unknown    bool                   // the program computes names, so that Tools are all
	Skills     []*LinkedSkill         // that it imports, and those that they import
	Warnings   []string
	Report     rules.RuleReport // of the program alone

	lines, indent int // before the program, and before each of its lines
}

// Locate returns the line and column in the original program that correspond to a line and column of Code. Lines and
// columns count from 1, and columns count code points.
func (c CheckedProgram) Locate(line, column int) (int, int) { return line + c.lines, column + c.indent }

// PythonChecker checks Python programs. It is safe for concurrent use.
type PythonChecker struct {
	parser   CodeParser
	builtins map[string]bool
	made     source.MemoCache[*core.ToolServer, core.ServerNamespace]
	params   source.MemoCache[*core.Tool, bindings.ToolParameters]
	skills   source.MemoCache[skillKey, *pythonProgram]
}

// New returns a checker that parses programs with p.
func New(p CodeParser) *PythonChecker {
	const servers, tools = 512, 4096
	return &PythonChecker{
		parser: p, builtins: bindings.BuiltinNames(),
		made:   source.NewMemo[*core.ToolServer, core.ServerNamespace](servers),
		params: source.NewMemo[*core.Tool, bindings.ToolParameters](tools),
		skills: source.NewMemo[skillKey, *pythonProgram](256),
	}
}

// pythonProgram holds a program while it is being checked.
type pythonProgram struct {
	checker *PythonChecker
	written string // as it was sent
	code    string
	tools   *core.Toolset
	failed  *syntaxError
	facts   *programFacts
	scopes  *scopeTable
	tree    *rules.SyntaxTree
	report  rules.RuleReport
	lines   int
	indent  int
	reach   *programReach
}

// maxCode bounds the code that is parsed, in bytes.
const maxCode = 4 << 20

// CheckProgram checks a program against the tools that it may call. The error has kind syntax, policy, type,
// tool_not_found, limit or cancelled if its cause is the program or ctx. All other errors come from the parser.
func (c *PythonChecker) CheckProgram(ctx context.Context, src ProgramSource, tools *core.Toolset) (CheckedProgram, *core.Error) {
	p, refusal := c.judgeProgram(ctx, src, tools)
	if refusal != nil {
		return CheckedProgram{}, refusal
	}
	l := c.newLinker(src, tools)
	if refusal := l.checkUses(ctx, p, nil); refusal != nil {
		return CheckedProgram{}, refusal
	}
	return CheckedProgram{
		Code: p.code, Namespaces: p.serverNamespaces(), Tools: p.reach.reachableTools(tools), Unknown: p.reach.unknown,
		lines: p.lines, indent: p.indent,
		Skills: l.skillModules(p), Warnings: append(p.report.ListWarnings(src.Level, p.findingPlace), p.adviseAnswers()...), Report: p.report,
	}, nil
}

// judgeProgram checks a program without the skills that it imports. It returns an error if the program must not run.
func (c *PythonChecker) judgeProgram(ctx context.Context, src ProgramSource, tools *core.Toolset) (*pythonProgram, *core.Error) {
	if len(src.Code) > maxCode {
		return nil, core.Errorf(core.KindLimit, "gate.python", "the program exceeds 4 MB").
			WithHint("put data into a workspace file and read it with open()")
	}
	return c.parseProgram(ctx, src.Code, tools, func(p *pythonProgram) *core.Error {
		if refusal := p.judgeTree(src.Level); refusal != nil {
			return refusal
		}
		p.reach = p.findReach()
		return p.refuseFindings(p.judgeFacts())
	})
}

// parseProgram finds the program in the text and parses it. It calls judge with the parsed program while the
// interpreter is still compiling it, to save time. A program that does not compile is refused even if judge finds no
// fault.
func (c *PythonChecker) parseProgram(
	ctx context.Context, code string, tools *core.Toolset, judge func(*pythonProgram) *core.Error,
) (*pythonProgram, *core.Error) {
	var first *pythonProgram
	for _, piece := range source.ProgramRanges(code, `"""`, `'''`) {
		text, indent := dedentText(strings.ReplaceAll(piece.Code, "\r\n", "\n"))
		p := &pythonProgram{checker: c, written: code, code: text, tools: tools, lines: piece.Lines, indent: indent}
		refusal, err := p.readProgram(ctx, judge)
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil, core.Errorf(core.KindCancelled, "gate.python", "the execution was cancelled")
		}
		if err != nil {
			return nil, failureError(err)
		}
		if p.failed == nil {
			return p, refusal
		}
		if first == nil {
			first = p
		}
	}
	return nil, first.syntaxError()
}

// readProgram parses the text and calls the function judge with the parsed program. If judge refuses the program, its
// error is returned as refusal. If the text is not a valid program, readProgram stores the reason in p.failed and
// returns no error.
func (p *pythonProgram) readProgram(ctx context.Context, judge func(*pythonProgram) *core.Error) (refusal *core.Error, err error) {
	parsed, err := p.checker.parser.Parse(ctx, p.code)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(p.code, "\n")
	known, err := decodeFacts(parsed.Known, len(lines))
	if err != nil {
		return nil, err
	}
	if p.failed = known.Error; p.failed != nil {
		return nil, nil
	}
	if err := p.readFacts(lines, known, parsed.Tree); err != nil {
		refusal = failureError(err)
	} else if code, executes := p.withImports(); executes {
		if _, err := parsed.Compiled(); err != nil {
			return nil, err
		}
		p.code = code
		return p.readProgram(ctx, judge)
	} else {
		refusal = judge(p)
	}
	told, err := parsed.Compiled()
	if err != nil {
		return nil, err
	}
	compiled, err := decodeFacts(told, len(lines))
	if err != nil {
		return nil, err
	}
	p.failed = compiled.Error
	return refusal, nil
}

// readFacts reads the program's facts and tree from the interpreter's report.
func (p *pythonProgram) readFacts(lines []string, known *guestFacts, pickle []byte) error {
	if known.Large {
		return rules.ErrLarge
	}
	s, err := unpickleTree(pickle)
	if err != nil {
		return err
	}
	scopes := scopesOf(s)
	if p.tree, err = treeOf(p.code, scopes); err != nil {
		return err
	}
	p.scopes = scopes
	p.facts = factsOf(lines, scopes, known)
	if !p.facts.hasShortNames() {
		return errMuch
	}
	return nil
}

// dedentText removes the indentation that all lines share. It returns the length of that indentation.
func dedentText(text string) (string, int) {
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

// serverNamespaces describes the servers whose Python modules the program can import. The interpreter in the sandbox
// creates the modules from these descriptions.
func (p *pythonProgram) serverNamespaces() []core.ServerNamespace {
	var all []core.ServerNamespace
	for _, s := range p.tools.Servers {
		if p.reach.unknown || p.reach.servers[s] != nil {
			all = append(all, p.checker.made.Get(s, func() core.ServerNamespace { return p.checker.namespaceOf(s) }))
		}
	}
	return all
}

// globalName returns the global name under which programs find a server. It returns "" if the environment already
// uses that name.
func (c *PythonChecker) globalName(s *core.ToolServer) string {
	if c.builtins[s.Python] {
		return ""
	}
	return s.Python
}

// namespaceOf describes a server. The interpreter in the sandbox creates the server's Python module from this
// description.
func (c *PythonChecker) namespaceOf(s *core.ToolServer) core.ServerNamespace {
	n := core.ServerNamespace{Server: s.Name, Global: c.globalName(s)}
	for _, spelling := range []string{s.Python, s.Name, s.TypeScript} {
		if spelling != "" && !containsString(n.Modules, spelling) {
			n.Modules = append(n.Modules, spelling)
		}
	}
	for _, t := range s.Tools {
		n.Functions = append(n.Functions, functionOf(t, c.toolParameters(t)))
	}
	return n
}

func (c *PythonChecker) toolParameters(t *core.Tool) bindings.ToolParameters {
	return c.params.Get(t, func() bindings.ToolParameters { return bindings.ParametersOf(t) })
}

func functionOf(t *core.Tool, params bindings.ToolParameters) core.ToolFunction {
	f := core.ToolFunction{Name: t.Python, Tool: t.Name}
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

func containsString(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}
