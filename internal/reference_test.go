package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// TestReferencePages checks that these pages of docs/reference agree with the code. With -update it writes the pages.
func TestReferencePages(t *testing.T) {
	for name, want := range map[string]string{
		"errors.md":       errorsPage(t),
		"outcome.md":      outcomePage(t),
		"audit-events.md": eventsPage(t),
		"metrics.md":      metricsPage(t),
		"files.md":        placesPage(t),
		"environment.md":  environmentPage(t),
		"platforms.md":    platformsPage(t),
		"benchmarks.md":   benchmarksPage(t),
	} {
		file := filepath.Join(root, "docs/reference", name)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%v: %s differs from the code. Write it: go test ./internal -run TestReferencePages -update", err, file)
		}
	}
}

const writtenBy = "\n<!-- Written by: go test ./internal -run TestReferencePages -update -->\n"

func errorsPage(t *testing.T) string {
	return "# Errors, statuses and exit codes\n" + writtenBy + `
An Outcome has a status. If something failed, it also has an error with a kind, a message that names the cause, and often a hint
that names the next step. Programs can read the kind of a failed call as ` + "`error.kind`" + `. New versions only add kinds and statuses.

## Error kinds

` + constantsTable(t, "internal/core/error.go", "Kind") + `
## Statuses

` + constantsTable(t, "internal/core/outcome.go", "OutcomeStatus") + `
## Exit codes

` + exitCodesTable(t) + `
[Use it in scripts](../guides/scripting.md) says how scripts use them.
`
}

// outcomePage returns the page about the Outcome. The text of a field is the comment of the field in package core.
func outcomePage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Outcome\n" + writtenBy + `
An execution returns an Outcome: ` + "`execute_code`, `call_tool`" + ` and the other MCP tools that run something, and commands such as
` + "`retort run --json`" + `. Fields without a value are left out, except those in **bold**. New versions only add fields.

`)
	for _, part := range []struct{ heading, file, name, text string }{
		{"", "outcome.go", "Outcome", "For an agent task without a model, the Outcome also has the fields of [Task context](#task-context).\n\n"},
		{"Error", "error.go", "Error", ""},
		{"Approval", "approval.go", "Approval", "`retort approvals list --json` lists approvals with all fields. In an Outcome, which the model reads, `code`, `skills`,\n" +
			"`effects`, `change`, `impact` and `login` are left out. Arguments have tokens in place of personal values.\n\n"},
		{"Question", "approval.go", "Question", "An approval also has these fields:\n\n"},
		{"Intended call", "approval.go", "IntendedCall", ""},
		{"Sent call", "outcome.go", "SentCall", ""},
		{"Artifact", "outcome.go", "WorkspaceArtifact", ""},
		{"Stats", "outcome.go", "ExecutionStats", ""},
		{"Tokens", "outcome.go", "TokenStats", "Tokens are counted in the encoding o200k_base.\n\n"},
		{"Model", "task.go", "ModelUse", ""},
		{"Task context", "task.go", "TaskContext", ""},
	} {
		if part.heading != "" {
			fmt.Fprintf(&b, "\n## %s\n\n", part.heading)
		}
		b.WriteString(part.text + fieldsTable(t, "internal/core/"+part.file, part.name))
	}
	return b.String()
}

// fieldsTable returns a table of the fields that a struct has in JSON. Their comments are the descriptions.
func fieldsTable(t *testing.T, file, typeName string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| field | type | |\n|---|---|---|\n")
	for _, f := range structFields(t, file, typeName) {
		if f.Tag == nil {
			continue
		}
		tag, _ := strconv.Unquote(f.Tag.Value)
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "-" {
			continue
		}
		text := strings.Join(strings.Fields(f.Doc.Text()+f.Comment.Text()), " ")
		if !strings.HasSuffix(text, ".") {
			t.Errorf("%s: the comment of %s.%s is not a sentence: %q", file, typeName, f.Names[0].Name, text)
		}
		shown := "`" + name + "`"
		if options == "" {
			shown = "**" + shown + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", shown, jsonType(f.Type), text)
	}
	return b.String()
}

func structFields(t *testing.T, file, typeName string) (fields []*ast.Field) {
	t.Helper()
	ast.Inspect(parseGo(t, file), func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok && s.Name.Name == typeName {
			fields = s.Type.(*ast.StructType).Fields.List
		}
		return true
	})
	if fields == nil {
		t.Errorf("%s has no struct %s", file, typeName)
	}
	return fields
}

// outcomeSections are the headings of outcome.md by the type that they describe.
var outcomeSections = map[string]string{
	"Error": "error", "Approval": "approval", "IntendedCall": "intended-call", "SentCall": "sent-call",
	"WorkspaceArtifact": "artifact", "ExecutionStats": "stats", "TokenStats": "tokens", "ModelUse": "model",
}

// jsonType describes how a Go type is written in JSON.
func jsonType(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return jsonType(x.X)
	case *ast.ArrayType:
		return "list: " + jsonType(x.Elt)
	case *ast.MapType:
		return "object: " + jsonType(x.Value)
	case *ast.SelectorExpr:
		if x.Sel.Name == "Time" {
			return "time"
		}
		return "any" // json.RawMessage
	case *ast.Ident:
		return jsonTypeName(x.Name)
	}
	return "?"
}

func jsonTypeName(name string) string {
	switch name {
	case "string", "Language", "Kind", "RepeatKind", "ApprovalScope":
		return "string"
	case "OutcomeStatus":
		return "[status](errors.md#statuses)"
	case "int", "int64", "float64":
		return "number"
	case "bool":
		return "boolean"
	}
	if anchor := outcomeSections[name]; anchor != "" {
		return "[" + strings.ReplaceAll(anchor, "-", " ") + "](#" + anchor + ")"
	}
	return "object"
}

func eventsPage(t *testing.T) string {
	return "# Events of the audit log\n" + writtenBy + `
Each entry of the audit log has one of these kinds. ` + "`retort audit query --kind KIND`" + ` shows them, and
[The audit log](../guides/audit-log.md) says how they are stored and exported.

` + constantsTable(t, "internal/core/event.go", "EventKind")
}

func metricsPage(t *testing.T) string {
	return "# Metrics\n" + writtenBy + `
These metrics are exported by OTLP and at the address in ` + "`telemetry.prometheus`" + `. There, dots are written as underscores, and
counters end with ` + "`_total`" + `. [Statistics, metrics and traces](../guides/monitor.md) says how to turn the export on.

| metric | unit | |
|---|---|---|
` + strings.Join(metricRows(t), "")
}

// constantsTable returns a table of the constants of one type in a file. Their comments are the descriptions.
func constantsTable(t *testing.T, file, typeName string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	eachConstant(t, file, func(s *ast.ValueSpec) {
		if id, ok := s.Type.(*ast.Ident); !ok || id.Name != typeName {
			return
		}
		value, err := strconv.Unquote(s.Values[0].(*ast.BasicLit).Value)
		if err != nil || s.Comment == nil {
			t.Errorf("%s: %s has no comment, or its value is not a string", file, s.Names[0].Name)
			return
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", value, strings.TrimSpace(s.Comment.Text()))
	})
	return b.String()
}

func exitCodesTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	eachConstant(t, "cmd/retort/main.go", func(s *ast.ValueSpec) {
		if strings.HasPrefix(s.Names[0].Name, "exit") && s.Comment != nil {
			fmt.Fprintf(&b, "| %s | %s |\n", s.Values[0].(*ast.BasicLit).Value, strings.TrimSpace(s.Comment.Text()))
		}
	})
	return b.String()
}

func eachConstant(t *testing.T, file string, visit func(*ast.ValueSpec)) {
	t.Helper()
	for _, d := range parseGo(t, file).Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			visit(s.(*ast.ValueSpec))
		}
	}
}

func parseGo(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// metricRows returns a row for each instrument that the telemetry package creates.
func metricRows(t *testing.T) []string {
	t.Helper()
	var rows []string
	ast.Inspect(parseGo(t, "internal/telemetry/metrics.go"), func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		texts := literalTexts(call.Args)
		if len(texts) < 2 || !strings.HasPrefix(texts[0], "retort.") {
			return true
		}
		unit := "s"
		if len(texts) > 2 {
			unit = strings.Trim(texts[2], "{}")
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", texts[0], unit, texts[1]))
		return true
	})
	if len(rows) < 15 {
		t.Errorf("only %d metrics were found", len(rows))
	}
	return rows
}

// literalTexts returns the string literals at the beginning of a call's arguments.
func literalTexts(args []ast.Expr) (texts []string) {
	for _, a := range args {
		l, ok := a.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return texts
		}
		text, err := strconv.Unquote(l.Value)
		if err != nil {
			return texts
		}
		texts = append(texts, text)
	}
	return texts
}
