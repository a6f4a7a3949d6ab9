// Package typescript checks a TypeScript or JavaScript program against the tools that it names, and produces the
// JavaScript that the sandbox runs. It uses the compiler of github.com/microsoft/typescript-go/tsc.
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

// ProgramSource holds a program as it was sent, and the settings for its check.
type ProgramSource struct {
	Code     string
	Name     string // file name, for messages
	Language core.Language
	Level    rules.StrictnessLevel
	Skills   source.SkillLibrary // nil has none
}

// CheckedProgram describes a program that has passed the check.
type CheckedProgram struct {
	Code       string                 // the body of an async function, in JavaScript
	Namespaces []core.ServerNamespace // the servers it names; all of them if Unknown
	Tools      []*core.Tool           // those it can reach; all of them if that is unknown
	Skills     []*LinkedSkill         // that it imports, and those that they import
	Unknown    bool                   // the program computes names, so that Tools are all
	Warnings   []string               // what the rules and the type check say that is no reason to refuse
	Report     rules.RuleReport       // of the program alone

	result *tsc.Result
	lines  int // before the program, in the text as written
}

// Locate returns the line and column in the original program that correspond to a line and column of Code. Lines and
// columns count from 1, and columns count code points.
func (c CheckedProgram) Locate(line, column int) (int, int) {
	if c.result == nil {
		return line, column
	}
	line, column = c.result.Locate(line, column)
	return line + c.lines, column
}

// ScriptChecker checks programs in TypeScript and JavaScript. It is safe for concurrent use.
type ScriptChecker struct {
	compilers *compilerPool
	wrappers  *wrapperMaker
	names     serverNames
	made      source.MemoCache[*core.ToolServer, core.ServerNamespace]
	skills    source.MemoCache[skillKey, *LinkedSkill]
	parsed    source.MemoCache[[2]string, *scriptProgram] // skills by name and code
}

// New returns a ScriptChecker. It calls start for each compiler process that it needs. Unless StartWarmup was called
// before, the first check has to wait for a process to start. The caller must call Close.
func New(start ProcessStarter) *ScriptChecker {
	return &ScriptChecker{
		compilers: newCompilers(start), wrappers: newWrappers(tsc.Limits{}.Admit),
		names: serverNames{bindings.BuiltinNames()}, made: source.NewMemo[*core.ToolServer, core.ServerNamespace](512),
		skills: source.NewMemo[skillKey, *LinkedSkill](256), parsed: source.NewMemo[[2]string, *scriptProgram](256),
	}
}

// StartWarmup starts a compiler process in advance, unless one was started before. It returns when the process is
// ready.
func (c *ScriptChecker) StartWarmup() { c.compilers.warmProcess() }

// Close ends the compiler processes.
func (c *ScriptChecker) Close() error {
	c.compilers.closePool()
	return nil
}

// CheckProgram checks a program against the tools that it may call. The error has kind syntax, policy, type,
// tool_not_found, limit or cancelled if its cause is the program or ctx. It has kind internal if the compiler failed.
func (c *ScriptChecker) CheckProgram(ctx context.Context, src ProgramSource, tools *core.Toolset) (CheckedProgram, *core.Error) {
	compiler, err := c.compilers.takeProcess(ctx)
	if err != nil {
		return CheckedProgram{}, (&scriptProgram{src: src}).failureError(err)
	}
	defer c.compilers.returnProcess(compiler)
	program, refusal := parseProgram(ctx, compiler, src, tools)
	if refusal != nil {
		return CheckedProgram{}, refusal
	}
	if refusal := program.checkPolicy(); refusal != nil {
		return CheckedProgram{}, refusal
	}
	program.builtins = c.names.builtins
	program.reach = reachOf(program.source.Facts(), tools, c.names.globalServers(tools))
	linker := c.newLinker(compiler, src, tools)
	result, findings, refusal := linker.checkProgram(ctx, program)
	if refusal != nil {
		return CheckedProgram{}, refusal
	}
	if refusal := program.refuseFindings(findings); refusal != nil {
		return CheckedProgram{}, refusal
	}
	return CheckedProgram{
		Code: result.JavaScript, Namespaces: c.serverNamespaces(program.reach), Tools: program.reach.reachableTools(),
		Skills:   linker.skillModules(program.reach),
		Unknown:  program.reach.unknown,
		Warnings: append(program.report.ListWarnings(src.Level, program.findingPlace), program.findingWarnings(findings)...),
		Report:   program.report, result: result, lines: program.lines,
	}, nil
}

// scriptProgram holds a program while it is being checked.
type scriptProgram struct {
	src    ProgramSource
	tools  *core.Toolset
	source *tsc.Source
	report rules.RuleReport
	lines  int // before source's text
	reach  *programReach
	module bool // it is a skill

	builtins map[string]bool
}

func (p *scriptProgram) sourceKind() tsc.Kind {
	if p.src.Language == core.JavaScript {
		return tsc.JavaScript
	}
	return tsc.TypeScript
}

// parseProgram finds the program in the text that the client has sent, which may also contain prose and fences, and
// parses the program.
func parseProgram(ctx context.Context, compiler *compilerProcess, src ProgramSource, tools *core.Toolset) (*scriptProgram, *core.Error) {
	kind := (&scriptProgram{src: src}).sourceKind()
	var first *scriptProgram
	for _, piece := range source.ProgramRanges(src.Code, "/*", "`") {
		p := &scriptProgram{src: src, tools: tools, lines: piece.Lines}
		parsed, err := compiler.parseText(ctx, piece.Code, kind)
		if err != nil {
			return nil, p.failureError(err)
		}
		p.source, p.report = parsed, compiler.report
		if len(parsed.Errors()) == 0 {
			return p, nil
		}
		if first == nil {
			first = p
		}
	}
	return nil, first.refuseFindings(first.syntaxFindings())
}

// failureError converts an error of the compiler to the error for the client, with a hint.
func (p *scriptProgram) failureError(err error) *core.Error {
	var refused *core.Error
	if errors.As(err, &refused) { // by what starts the compiler's processes
		return refused
	}
	e := core.Errorf(core.KindLimit, "gate.typescript", "%w", err)
	var refusal *tsc.Refusal
	if errors.As(err, &refusal) && refusal.Line > 0 {
		e.Line = refusal.Line + p.lines
		e.Frame = source.CodeFrame(p.src.Code, e.Line, 1, 1)
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

// serverNamespaces describes the servers that the program can use. The JavaScript engine in the sandbox creates the
// servers' namespaces from these descriptions.
func (c *ScriptChecker) serverNamespaces(r *programReach) []core.ServerNamespace {
	var all []core.ServerNamespace
	for _, s := range r.namedServers() {
		n := c.made.Get(s, func() core.ServerNamespace { return namespaceOf(s, c.names.globalName(s)) })
		all = append(all, addSpellings(n, r.servers[s].other))
	}
	return all
}
