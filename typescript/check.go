package tsc

import (
	"context"
	"strings"

	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/compiler"
	"github.com/microsoft/typescript-go/internal/core"
	"github.com/microsoft/typescript-go/internal/tsoptions"
	"github.com/microsoft/typescript-go/internal/tspath"
)

// Input holds the declarations and options that a program is checked with.
type Input struct {
	// Files maps absolute paths to the texts of declaration files, such as /servers/a/index.d.ts. The program itself
	// is treated as a file in the root directory.
	Files map[string]string
	// Ambient lists the paths in Files that declare globals or ambient modules, which need no import.
	Ambient []string
	// Specifiers maps module specifiers as written in the program to those that replace them.
	Specifiers map[string]string
	// Strict enables the compiler option "strict". Without it, the check does not complain about values of unknown
	// type, which the results of most tools have.
	Strict bool
	// Module means that Check emits a module, which other programs can import, instead of a program that is run. The
	// comment of unit.body describes the difference.
	Module bool
}

// Result holds the result of Check. JavaScript is the body of an async function that uses the names __import, __meta
// and __exports, which its environment must define.
type Result struct {
	Diagnostics []Diagnostic // in source order, without the syntax errors of Parse
	JavaScript  string
	Text        string // of a module: the declarations for its importers, as a file of Input

	positions *positionMap
}

// Locate returns the line and column, in the text given to Parse, that correspond to a line and column of JavaScript.
func (r *Result) Locate(line, column int) (int, int) { return r.positions.locate(line, column) }

// Check type-checks a program that has no syntax errors and emits JavaScript. Errors in the program are not returned
// as an error but as Diagnostics of the Result. If Check returns an error, it is that of ctx, or it wraps an exported
// error of this package, such as ErrTooLarge.
func (c *Compiler) Check(ctx context.Context, src *Source, in Input) (*Result, error) {
	return guarded(ctx, c, func(ctx context.Context) (*Result, error) {
		return c.check(ctx, src, in)
	})
}

func (c *Compiler) check(ctx context.Context, src *Source, in Input) (*Result, error) {
	u := newUnit(src, in)
	program := compiler.NewProgram(compiler.ProgramOptions{
		Host:           newHost(u.file, in.Files, c.cache),
		Config:         commandLine(append([]string{u.file.FileName()}, in.Ambient...), in.Strict),
		SingleThreaded: core.TSTrue,
	})
	types, done := program.GetTypeChecker(ctx)
	found := append(types.GetDiagnostics(ctx, u.file), u.file.BindDiagnostics()...)
	if ctx.Err() != nil {
		done()
		return nil, timeError(ctx)
	}
	diagnostics := u.diagnostics(found, describer{u, types, in.Files})
	code, positions, direct := u.direct(types, found)
	done()
	if direct {
		return &Result{Diagnostics: diagnostics, JavaScript: code, Text: u.exported(), positions: positions}, nil
	}
	js, mappings := emit(ctx, program, u.file)
	if ctx.Err() != nil {
		return nil, timeError(ctx)
	}
	body, positions, err := u.body(js, mappings)
	if err != nil {
		return nil, err
	}
	return &Result{Diagnostics: diagnostics, JavaScript: body, Text: u.exported(), positions: positions}, nil
}

// unit holds the text that is type-checked and emitted. It is the text of a Source in which some syntax has been
// rewritten.
type unit struct {
	src     *Source
	file    *ast.SourceFile
	shift   offsets // from file's text to src.file's text
	returns map[int]bool
	module  bool
}

func newUnit(src *Source, in Input) *unit {
	r := &rewriter{file: src.file, text: src.file.Text(), specifiers: in.Specifiers, names: newScope()}
	r.rewrite()
	text, shift := r.edits.apply(src.file.Text())
	u := &unit{src: src, shift: shift, returns: make(map[int]bool, len(r.returns)), module: in.Module}
	u.file = parseModule(src.kind, text)
	for _, at := range r.returns {
		u.returns[at] = true
	}
	return u
}

// written converts an offset in the rewritten text u.file to the corresponding offset in the text given to Parse.
func (u *unit) written(pos int) int { return u.src.shift.back(u.shift.back(pos)) }

// exported returns the text of a module against which programs that import the module are type-checked. It returns ""
// for a program, because nothing can import it.
func (u *unit) exported() string {
	if !u.module {
		return ""
	}
	return u.file.Text()
}

func (u *unit) diagnostics(found []*ast.Diagnostic, d describer) []Diagnostic {
	out := make([]Diagnostic, 0, len(found))
	for _, f := range found {
		if f.File() == u.file && len(out) < maxErrors {
			out = append(out, d.describe(f))
		}
	}
	return sorted(out)
}

func emit(ctx context.Context, program *compiler.Program, file *ast.SourceFile) (js, mappings string) {
	result := program.Emit(ctx, compiler.EmitOptions{
		TargetSourceFile: file,
		WriteFile: func(name, text string, _ *compiler.WriteFileData) error {
			if name == "/out/main.js" {
				js = text
			}
			return nil
		},
	})
	if result != nil && len(result.SourceMaps) > 0 {
		mappings = result.SourceMaps[0].SourceMap.Mappings
	}
	return strings.TrimSuffix(js, "//# sourceMappingURL=main.js.map"), mappings
}

func commandLine(roots []string, strict bool) *tsoptions.ParsedCommandLine {
	return tsoptions.NewParsedCommandLine(options(core.IfElse(strict, core.TSTrue, core.TSFalse)), roots, tspath.ComparePathsOptions{
		UseCaseSensitiveFileNames: true, CurrentDirectory: "/",
	})
}

func options(strict core.Tristate) *core.CompilerOptions {
	return &core.CompilerOptions{
		Strict:  strict,
		AllowJs: core.TSTrue, CheckJs: core.TSTrue, AllowUmdGlobalAccess: core.TSTrue, AllowImportingTsExtensions: core.TSTrue,
		AllowUnreachableCode: core.TSTrue, AllowUnusedLabels: core.TSTrue,
		Target: target, Module: core.ModuleKindESNext, ModuleResolution: core.ModuleResolutionKindBundler,
		ModuleDetection: core.ModuleDetectionKindForce, Lib: libs(), Types: []string{}, LibReplacement: core.TSFalse,
		SkipLibCheck: core.TSTrue,
		OutDir:       "/out", RootDir: "/", SourceMap: core.TSTrue, RemoveComments: core.TSTrue, NewLine: core.NewLineKindLF,
	}
}

// libs lists the compiler's lib files that declare the built-ins of JavaScript engines of 2025. The emitted code uses
// only the syntax of ES2023.
func libs() []string {
	return []string{
		"lib.es2024.d.ts", "lib.es2025.collection.d.ts", "lib.es2025.iterator.d.ts", "lib.es2025.promise.d.ts",
		"lib.es2025.regexp.d.ts", "lib.esnext.array.d.ts", "lib.esnext.disposable.d.ts", "lib.esnext.error.d.ts",
	}
}
