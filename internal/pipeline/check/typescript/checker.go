// Package typescript checks a TypeScript or JavaScript program against the tools that it names, and produces what the
// runtime evaluates. It uses the compiler of github.com/microsoft/typescript-go/tsc.
package typescript

import (
	"context"
	"errors"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
)

// Source holds a program as it was written.
type Source struct {
	Code     string
	Name     string // file name, for messages
	Language core.Language
	Level    rules.Level
	Skills   source.Library // nil has none
}

// Checked holds a program that may run.
type Checked struct {
	Code       string           // the body of an async function, in JavaScript
	Namespaces []core.Namespace // the servers it names; all of them if Unknown
	Tools      []*core.Tool     // those it can reach; all of them if that is unknown
	Skills     []*Skill         // that it imports, and those that they import
	Unknown    bool             // the program computes names, so that Tools are all
	Warnings   []string         // what the rules and the type check say that is no reason to refuse
	Report     rules.Report     // of the program alone

	result *tsc.Result
	lines  int // before the program, in the text as written
}

// Locate converts a line and column of Code to those of the program as it was written. All are 1-based; columns count
// code points.
func (c Checked) Locate(line, column int) (int, int) {
	if c.result == nil {
		return line, column
	}
	line, column = c.result.Locate(line, column)
	return line + c.lines, column
}

// Checker checks programs. It is safe for concurrent use.
type Checker struct {
	compilers *compilers
	wrappers  *wrappers
	names     names
	made      source.Memo[*core.Server, core.Namespace]
	skills    source.Memo[skillKey, *Skill]
	parsed    source.Memo[[2]string, *program] // skills by name and code
}

// New returns a checker whose compiler runs in processes that start starts. The first check waits for one, unless
// Warm was called before. Call Close to end them.
func New(start Start) *Checker {
	return &Checker{
		compilers: newCompilers(start), wrappers: newWrappers(tsc.Limits{}.Admit),
		names: names{bindings.Builtins()}, made: source.NewMemo[*core.Server, core.Namespace](512), skills: source.NewMemo[skillKey, *Skill](256), parsed: source.NewMemo[[2]string, *program](256),
	}
}

// Warm starts a compiler process if none was started before, and returns when it is ready.
func (c *Checker) Warm() { c.compilers.warm() }

// Close ends the compiler processes.
func (c *Checker) Close() error {
	c.compilers.close()
	return nil
}

// Check checks a program against the tools it may see. Its error has the kind syntax, policy, type, tool_not_found,
// limit or cancelled if the cause is the program or ctx, and internal if it is the compiler.
func (c *Checker) Check(ctx context.Context, src Source, tools *core.Toolset) (Checked, *core.Error) {
	compiler, err := c.compilers.take(ctx)
	if err != nil {
		return Checked{}, (&program{src: src}).failure(err)
	}
	defer c.compilers.give(compiler)
	program, refusal := parse(ctx, compiler, src, tools)
	if refusal != nil {
		return Checked{}, refusal
	}
	if refusal := program.policy(); refusal != nil {
		return Checked{}, refusal
	}
	program.builtins = c.names.builtins
	program.reach = reachOf(program.source.Facts(), tools, c.names.globals(tools))
	linker := c.linker(compiler, src, tools)
	result, findings, refusal := linker.program(ctx, program)
	if refusal != nil {
		return Checked{}, refusal
	}
	if refusal := program.refuse(findings); refusal != nil {
		return Checked{}, refusal
	}
	return Checked{
		Code: result.JavaScript, Namespaces: c.namespaces(program.reach), Tools: program.reach.list(), Skills: linker.modules(program.reach),
		Unknown: program.reach.unknown, Warnings: append(program.report.Warnings(src.Level, program.place), program.warnings(findings)...), Report: program.report, result: result, lines: program.lines,
	}, nil
}

// program holds one program while it is checked.
type program struct {
	src    Source
	tools  *core.Toolset
	source *tsc.Source
	report rules.Report
	lines  int // before source's text
	reach  *reach
	module bool // it is a skill

	builtins map[string]bool
}

func (p *program) kind() tsc.Kind {
	if p.src.Language == core.JavaScript {
		return tsc.JavaScript
	}
	return tsc.TypeScript
}

// parse finds the program in the text and parses it.
func parse(ctx context.Context, compiler *process, src Source, tools *core.Toolset) (*program, *core.Error) {
	kind := (&program{src: src}).kind()
	var first *program
	for _, piece := range source.Pieces(src.Code, "/*", "`") {
		p := &program{src: src, tools: tools, lines: piece.Lines}
		parsed, err := compiler.parse(ctx, piece.Code, kind)
		if err != nil {
			return nil, p.failure(err)
		}
		p.source, p.report = parsed, compiler.report
		if len(parsed.Errors()) == 0 {
			return p, nil
		}
		if first == nil {
			first = p
		}
	}
	return nil, first.refuse(first.syntax())
}

// failure returns the error for a program that could not be checked at all.
func (p *program) failure(err error) *core.Error {
	var refused *core.Error
	if errors.As(err, &refused) { // by what starts the compiler's processes
		return refused
	}
	e := core.Errorf(core.KindLimit, "gate.typescript", "%w", err)
	var refusal *tsc.Refusal
	if errors.As(err, &refusal) && refusal.Line > 0 {
		e.Line = refusal.Line + p.lines
		e.Frame = source.Frame(p.src.Code, e.Line, 1, 1)
	}
	switch {
	case errors.Is(err, context.Canceled):
		e.Kind = core.KindCancelled
		return e
	case errors.Is(err, tsc.ErrUnclear):
		e.Kind = core.KindSyntax
		return e
	case errors.Is(err, tsc.ErrTooLarge):
		return e.WithHint("put data into a workspace file and read it with node:fs/promises")
	case errors.Is(err, tsc.ErrTooDeep):
		return e.WithHint("build nested values and long expressions in several statements")
	case errors.Is(err, tsc.ErrTime), errors.Is(err, errCrash):
		return e.WithHint("simplify the types: annotate with any, or write the program in JavaScript")
	case errors.Is(err, tsc.ErrBusy), core.LacksFiles(err):
		return e.WithHint("try again")
	}
	e.Kind = core.KindInternal
	return e.WithHint("this is a bug in Retort; writing the program differently may avoid it")
}

// namespaces returns the servers that the guest creates for a program.
func (c *Checker) namespaces(r *reach) []core.Namespace {
	var all []core.Namespace
	for _, s := range r.named() {
		n := c.made.Get(s, func() core.Namespace { return namespaceOf(s, c.names.global(s)) })
		all = append(all, respelt(n, r.servers[s].other))
	}
	return all
}
