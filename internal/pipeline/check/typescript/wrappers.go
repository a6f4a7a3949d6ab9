package typescript

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check/source"
)

// wrapperMaker generates the declaration files against which programs are checked.
type wrapperMaker struct {
	ambient      string
	declarations source.MemoCache[declaredTool, string]
	known        func() []string
	admit        func(text string) error
}

// declaredTool is the key under which a tool's declaration is cached. A tool can have two declarations: one with the
// result type that was inferred from earlier results, and one without.
type declaredTool struct {
	tool    *core.Tool
	learned bool
}

func newWrappers(admit func(text string) error) *wrapperMaker {
	ambient := bindings.AmbientDeclarations()
	w := &wrapperMaker{
		ambient: ambient, admit: admit,
		declarations: source.NewMemo[declaredTool, string](4096),
	}
	w.known = sync.OnceValue(func() []string { return declaredModules(w.ambient) })
	return w
}

// otherModules returns the names of the modules that do not belong to servers, such as node:path.
func (w *wrapperMaker) otherModules() []string { return w.known() }

var moduleDeclaration = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*declare module "([^"]+)"`)
})

func declaredModules(ambient string) []string {
	var names []string
	for _, m := range moduleDeclaration().FindAllStringSubmatch(ambient, -1) {
		names = append(names, m[1])
	}
	return names
}

// yielding maps the global names that yield to a server of that name to their declarations, which are omitted then.
var yielding = map[string]string{
	"path":  "declare var path: typeof import(\"node:path\");\n",
	"pages": "declare var pages: PageReader;\n",
}

// ambientFor returns the declarations of the globals of programs that can use these servers.
func (w *wrapperMaker) ambientFor(tools *core.Toolset) string {
	ambient := w.ambient
	for name, declaration := range yielding {
		if s, ok := tools.FindServer(name); ok && s.TypeScript == name {
			ambient = strings.Replace(ambient, declaration, "", 1)
		}
	}
	return ambient
}

// clientDeclaration declares the module ./client, whose exports are also globals.
const clientDeclaration = `
declare const call: typeof globalThis.callMCPTool;
declare const search: typeof globalThis.searchTools;
declare const list: PageReader;
declare const pause: typeof globalThis.sleep;
declare const failure: typeof globalThis.ToolError;
type failure = InstanceType<typeof globalThis.ToolError>;
export { call as callMCPTool, search as searchTools, list as pages, pause as sleep, failure as ToolError };
`

// declareInput returns the compiler input with the declarations of the globals and of the tools that a program names.
// If the argument learned is false, it does not use inferred result types: a tool that declares no result type may
// then return anything.
func (w *wrapperMaker) declareInput(r *programReach, learned bool) tsc.Input {
	files := map[string]string{"/globals.d.ts": w.ambientFor(r.tools), "/client.d.ts": clientDeclaration}
	in := tsc.Input{Files: files, Ambient: []string{"/globals.d.ts"}, Specifiers: r.specifiers}
	var all, index strings.Builder
	for _, s := range r.namedServers() {
		needs := r.servers[s]
		path := "/servers/" + s.TypeScript + "/index.d.ts"
		files[path] = w.serverIndex(s, needs, files, learned)
		if needs.global {
			in.Ambient = append(in.Ambient, path)
		}
		all.WriteString("export * as " + s.TypeScript + ` from "/servers/` + s.TypeScript + "/index\";\n")
		index.WriteString("  readonly " + s.TypeScript + `: typeof import("/servers/` + s.TypeScript + "/index\");\n")
	}
	for _, name := range clientNames {
		if s, ok := r.tools.FindServer(name); !ok || s.TypeScript != name {
			all.WriteString("export { " + name + " } from \"/client\";\n")
			index.WriteString("  readonly " + name + ": typeof globalThis." + name + ";\n")
		}
	}
	files["/servers/index.d.ts"] = all.String() + "export {};\n"
	if r.index {
		files["/servers.d.ts"] = "interface Servers {\n" + index.String() + "}\n"
		in.Ambient = append(in.Ambient, "/servers.d.ts")
	}
	return in
}

// manyTools bounds how many tools of a server are declared in full if a program may use any of them. If the server
// has more, their arguments are not checked.
const manyTools = 150

// serverIndex returns the declaration of a server's module. The tools are declared in separate files, so that the
// compiler can reuse a parsed file for the next program.
func (w *wrapperMaker) serverIndex(s *core.ToolServer, needs *serverNeeds, files map[string]string, learned bool) string {
	var index strings.Builder
	for _, t := range s.Tools {
		switch {
		case needs.tools[t], needs.whole && len(s.Tools) <= manyTools:
			path := toolPath(s, t)
			d := declaredTool{t, learned && t.Learned != nil}
			files["/"+path+".d.ts"] = w.declarations.Get(d, func() string { return w.declareTool(d) })
			index.WriteString(`export * from "/` + path + "\";\n")
		case needs.whole:
			index.WriteString("export declare const " + t.TypeScript + ": any;\n")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needs.other)) {
		t := needs.other[name]
		index.WriteString("export { " + t.TypeScript + " as " + name + ` } from "/` + toolPath(s, t) + "\";\n")
	}
	if needs.self && !hasTool(s, s.TypeScript) {
		index.WriteString("export * as " + s.TypeScript + ` from "/servers/` + s.TypeScript + "/index\";\n")
	}
	for _, name := range clientNames {
		if needs.client && !hasTool(s, name) {
			index.WriteString("export { " + name + " } from \"/client\";\n")
		}
	}
	index.WriteString("export {};\n")
	if needs.global {
		index.WriteString("export as namespace " + s.TypeScript + ";\n")
	}
	return index.String()
}

// hasTool reports whether s has a tool that TypeScript programs call by this name.
func hasTool(s *core.ToolServer, name string) bool {
	return slices.ContainsFunc(s.Tools, func(t *core.Tool) bool { return t.TypeScript == name })
}

// declareTool returns the declaration of one tool. The overload with one object comes last, because the compiler's
// error message is about the last overload. A tool whose schema is too complex for the compiler is declared as
// accepting anything.
func (w *wrapperMaker) declareTool(d declaredTool) string {
	t := d.tool
	if !d.learned && t.Learned != nil {
		c := *t
		c.Learned = nil
		t = &c
	}
	text := strings.TrimRight(bindings.AdviceDeclaration(t), "\n")
	lead := "export function " + t.TypeScript + "("
	if w.admit(text) != nil {
		text = lead + "...input: any[]): Promise<any>;"
	}
	lines := strings.Split(text, "\n")
	n := len(lines)
	if n >= 2 && strings.HasPrefix(lines[n-1], lead) && strings.HasPrefix(lines[n-2], lead) {
		lines[n-1], lines[n-2] = lines[n-2], lines[n-1]
	}
	return strings.Join(lines, "\n") + "\nexport default " + t.TypeScript + ";\n"
}
