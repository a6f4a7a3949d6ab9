package engine

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"retort/internal/agent/templates"
	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check"
)

// openTemplates opens the project's templates and logs which of them replace built-in ones.
func openTemplates(c *configuration) (*templates.TemplateSet, error) {
	dir := ""
	if c.config.Home != "" {
		dir = c.DataDir().Templates()
	}
	set, refused := templates.Open(dir)
	if refused != nil {
		return nil, refused
	}
	for _, name := range templates.TemplateNames() {
		if file := set.OverriddenFile(name); file != "" {
			c.log.Info("a template of the project replaces the built-in one", "file", file)
		}
	}
	return set, nil
}

// wrapperRenderer returns the function that renders wrapper files with the project's templates; nil if the project
// has none. If a template fails or omits the generated code, the function returns that code.
func wrapperRenderer(set *templates.TemplateSet) func(core.Language, string, string) string {
	if set.OverriddenFile(templates.WrapperTS) == "" && set.OverriddenFile(templates.WrapperPy) == "" {
		return nil
	}
	return func(lang core.Language, path, code string) string {
		name := templates.WrapperTS
		if lang == core.Python {
			name = templates.WrapperPy
		}
		text, refused := set.Render(name, templates.WrapperData{Path: path, Code: code})
		if refused != nil || !strings.Contains(text, code) {
			return code
		}
		return text
	}
}

// stubRenderer returns the function that renders a tool's definition for models with the project's templates; nil if
// the project has none. If a template fails or omits the definition, the function returns the definition.
func stubRenderer(set *templates.TemplateSet) func(core.Language, *core.Tool, string, string, bool) string {
	if set.OverriddenFile(templates.StubTS) == "" && set.OverriddenFile(templates.StubPy) == "" {
		return nil
	}
	return func(lang core.Language, t *core.Tool, name, definition string, full bool) string {
		file := templates.StubTS
		if lang == core.Python {
			file = templates.StubPy
		}
		text, refused := set.Render(file, templates.StubData{
			Server: t.Server, Tool: t.Name, Name: name, Definition: definition, Full: full,
		})
		if refused != nil || !strings.Contains(text, definition) {
			return definition
		}
		return text
	}
}

// checkStubTemplate returns an error if the project's template leaves out the tool's definition.
func checkStubTemplate(set *templates.TemplateSet, name templates.TemplateName) error {
	file := set.OverriddenFile(name)
	if file == "" {
		return nil
	}
	text, refused := set.Render(name, templates.ExampleData(name))
	if refused == nil && !strings.Contains(text, templates.ExampleDefinition) {
		refused = core.Errorf(core.KindInvalidArguments, "templates", "%s: {{.definition}} is missing from its output, or altered in it", file)
	}
	if refused != nil {
		return refused.WithHint("fix the file, or remove it to use the built-in template")
	}
	return nil
}

// checkTemplates returns an error if the output of a project's template fails the check of programs.
func checkTemplates(ctx context.Context, set *templates.TemplateSet, checker *check.ProgramChecker) error {
	for name, lang := range map[templates.TemplateName]core.Language{
		templates.SkeletonTS: core.TypeScript, templates.WrapperTS: core.TypeScript, templates.SkeletonPy: core.Python,
		templates.WrapperPy: core.Python,
	} {
		file := set.OverriddenFile(name)
		if file == "" {
			continue
		}
		text, refused := set.Render(name, templates.ExampleData(name))
		if refused == nil && (name == templates.WrapperTS || name == templates.WrapperPy) &&
			!strings.Contains(text, templates.ExampleCode(name)) {
			refused = core.Errorf(core.KindInvalidArguments, "templates", "%s: {{.code}} is missing from its output, or altered in it", file)
		}
		if refused == nil {
			refused = checkTemplateOutput(ctx, checker, file, lang, text)
		}
		if refused != nil {
			return refused.WithHint("fix the file, or remove it to use the built-in template")
		}
	}
	for _, name := range []templates.TemplateName{templates.StubTS, templates.StubPy} {
		if err := checkStubTemplate(set, name); err != nil {
			return err
		}
	}
	return nil
}

// checkTemplateOutput checks the example output of a template as a program that can call one sample tool.
func checkTemplateOutput(ctx context.Context, checker *check.ProgramChecker, file string, lang core.Language, text string) *core.Error {
	names, tools := bindings.AssignServer([]string{"sample"})["sample"], bindings.AssignTools([]string{"listThings"})["listThings"]
	tool := &core.Tool{
		Server: "sample", Name: "listThings", TypeScript: tools.TypeScript, Python: tools.Python,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"limit":{"type":"integer"}}}`),
	}
	sample := core.NewToolset(
		[]*core.ToolServer{{Name: "sample", TypeScript: names.TypeScript, Python: names.Python, Tools: []*core.Tool{tool}}},
	)
	_, refused := checker.Check(ctx, core.ExecutionRequest{Language: lang, Code: text, Name: filepath.Base(file)}, sample, nil)
	if refused == nil || refused.Kind == core.KindSandboxUnavailable {
		return nil
	}
	return core.Errorf(
		core.KindInvalidArguments, "templates", "%s: its output fails the program check, at line %d of the output: %s", file,
		refused.Line, refused.Message,
	)
}
