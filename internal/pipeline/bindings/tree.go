package bindings

import (
	_ "embed"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"retort/internal/core"
)

//go:embed client.ts
var clientTS string

//go:embed client.py
var clientPy string

//go:embed globals.d.ts
var globalsText string

//go:embed modules.d.ts
var modulesText string

//go:embed commands.d.ts
var commandsText string

// CommandDeclarations returns TypeScript declarations of the globals that only programs with permission to start
// commands have.
func CommandDeclarations() string { return commandsText }

// AmbientDeclarations returns a .d.ts file with declarations of everything that a program's environment adds to the
// language's own library: global names, and modules such as node:path, which can also be imported without the prefix
// node:. It does not contain the namespaces of servers, which can be added to the file's interface Servers.
func AmbientDeclarations() string {
	var b strings.Builder
	b.WriteString(globalsText + "\n" + sealedDoc + "declare " + sealedNames() + "\n" + modulesText)
	for _, m := range nodeModule().FindAllStringSubmatch(modulesText, -1) {
		b.WriteString(
			"\ndeclare module " + quoteString(m[1]) + " {\n  export * from \"node:" + m[1] + "\";\n  export { default } from \"node:" + m[1] +
				"\";\n}\n",
		)
	}
	return b.String()
}

var nodeModule = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^declare module "node:([^"]+)"`)
})

const serversFolder = "servers"

// ServerFolders maps each server to its folder below servers/. In TypeScript that is the server's name made safe for
// paths, in Python the module's name. The folders are unique even if case is ignored.
func ServerFolders(ts *core.Toolset, lang core.Language) map[string]string {
	out := make(map[string]string, len(ts.Servers))
	if lang == core.Python {
		for _, s := range ts.Servers {
			out[s.Name] = s.Python
		}
		return out
	}
	names := make([]string, len(ts.Servers))
	for i, s := range ts.Servers {
		names[i] = s.Name
	}
	slices.Sort(names)
	for i, folder := range uniqueNames(names, "~", strings.ToLower, func(s string) string { return pathSafe(s, "server") }) {
		out[names[i]] = folder
	}
	return out
}

// pathSafe converts a name to a file name that is valid on every system.
func pathSafe(name, otherwise string) string {
	s := strings.Map(func(r rune) rune {
		if partOfWord(r) || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, name)
	s = strings.Trim(s, ".")
	if stem, _, _ := strings.Cut(s, "."); isDevice(stem) {
		s = "_" + s
	}
	if strings.Trim(s, "-_") == "" {
		return otherwise
	}
	return clipIdentifier(s, name)
}

// isDevice reports whether Windows reserves a file name for a device.
func isDevice(stem string) bool {
	stem = strings.ToLower(stem)
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(stem) == 4 && (strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")) && stem[3] >= '0' && stem[3] <= '9'
}

// toolFiles returns the file names of a server's tools, without suffix: the tools' identifiers, unless these would
// collide as file names.
func toolFiles(s *core.ToolServer) []string {
	taken := map[string]int{"index": 1}
	for _, t := range s.Tools {
		taken[strings.ToLower(t.TypeScript)]++
	}
	names := make([]string, len(s.Tools))
	for i, t := range s.Tools {
		names[i] = t.TypeScript
		if taken[strings.ToLower(t.TypeScript)] > 1 || isDevice(t.TypeScript) {
			names[i] += "~" + shortDigest(t.Name)[:6]
		}
	}
	return names
}

// WrapperFiles yields all wrapper files: relative paths with slashes, and the files' texts. For TypeScript these are
// client.ts, servers/index.ts and, for each server, servers/<folder>/index.ts and one file per tool. For Python they
// are client.py and one package per server.
func WrapperFiles(ts *core.Toolset, lang core.Language) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for file := range treeFiles(ts, lang) {
			if !yield(file.path, file.text()) {
				return
			}
		}
	}
}

// WrapperFile returns the text of the wrapper file with this path.
func WrapperFile(ts *core.Toolset, lang core.Language, name string) (string, bool) {
	name = path.Clean(strings.TrimPrefix(name, "/"))
	for file := range treeFiles(ts, lang) {
		if file.path == name {
			return file.text(), true
		}
	}
	return "", false
}

// ToolFile returns the path and text of a tool's TypeScript file. ok is false if the toolset does not contain the
// tool.
func ToolFile(ts *core.Toolset, t *core.Tool) (name, text string, ok bool) {
	s, ok := ts.FindServer(t.Server)
	if !ok {
		return "", "", false
	}
	i := slices.IndexFunc(s.Tools, func(other *core.Tool) bool { return other.Name == t.Name })
	if i < 0 {
		return "", "", false
	}
	return path.Join(serversFolder, ServerFolders(ts, core.TypeScript)[s.Name], toolFiles(s)[i]+".ts"), wrapperSource(ts.MarkTool(s.Tools[i])), true
}

// ListWrappers returns the sorted names of the files and folders in a folder of wrapper files. Names of folders end
// in "/".
func ListWrappers(ts *core.Toolset, lang core.Language, dir string) ([]string, bool) {
	prefix := path.Clean(strings.TrimPrefix(dir, "/")) + "/"
	if prefix == "./" {
		prefix = ""
	}
	found := map[string]bool{}
	for file := range treeFiles(ts, lang) {
		rest, ok := strings.CutPrefix(file.path, prefix)
		if !ok {
			continue
		}
		if name, _, inside := strings.Cut(rest, "/"); inside {
			found[name+"/"] = true
		} else {
			found[name] = true
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, len(names) > 0
}

// treeFile describes one wrapper file. Its text is produced on demand.
type treeFile struct {
	path string
	text func() string
}

func treeFiles(ts *core.Toolset, lang core.Language) iter.Seq[treeFile] {
	if lang == core.Python {
		return pythonFiles(ts)
	}
	return scriptFiles(ts)
}

func scriptFiles(ts *core.Toolset) iter.Seq[treeFile] {
	folders := ServerFolders(ts, core.TypeScript)
	return func(yield func(treeFile) bool) {
		ok := yield(treeFile{"client.ts", func() string { return clientTS + "\n" + sealedDoc + "export declare " + sealedNames() }}) &&
			yield(treeFile{serversFolder + "/index.ts", func() string { return serversIndex(ts, folders) }})
		for _, s := range ts.Servers {
			ok = ok && serverFiles(ts.MarkServer(s), path.Join(serversFolder, folders[s.Name]), yield)
		}
	}
}

func serverFiles(s *core.ToolServer, folder string, yield func(treeFile) bool) bool {
	if !yield(treeFile{folder + "/index.ts", func() string { return serverIndex(s) }}) {
		return false
	}
	for i, name := range toolFiles(s) {
		if !yield(treeFile{folder + "/" + name + ".ts", func() string { return wrapperSource(s.Tools[i]) }}) {
			return false
		}
	}
	return true
}

func serversIndex(ts *core.Toolset, folders map[string]string) string {
	var p tsPrinter
	p.writeDoc(typeDoc{text: "All servers."}, 0)
	for _, s := range ts.Servers {
		p.writeParts("export * as ", s.TypeScript, " from ", quoteString("./"+folders[s.Name]+"/index"), ";\n")
	}
	if len(ts.Servers) == 0 {
		p.writeParts("export {};\n")
	}
	return p.b.String()
}

func serverIndex(s *core.ToolServer) string {
	var p tsPrinter
	text := s.Instructions
	if text == "" {
		text = "The tools of " + s.Name + "."
	}
	p.writeDoc(typeDoc{text: text}, 0)
	for _, name := range toolFiles(s) {
		p.writeParts("export * from ", quoteString("./"+name), ";\n")
	}
	if len(s.Tools) == 0 {
		p.writeParts("export {};\n")
	}
	return p.b.String()
}

// wrapperSource returns the file of one tool, with a function that makes the call.
func wrapperSource(t *core.Tool) string {
	types := buildTypes(t)
	params := positionalParams(types.input.node)
	p := tsPrinter{tags: true}
	p.writeParts("import { callMCPTool")
	if params != nil {
		p.writeParts(", named")
	}
	if types.hasSealed() {
		p.writeParts(", type pii")
	}
	p.writeParts(" } from \"../../client\";\n\n")
	p.writeTypes(types)
	name := quoteString(t.Server + "__" + t.Name)
	if params == nil {
		p.writeSignatures(t, types, "")
		text := strings.TrimSuffix(p.b.String(), "\n")
		return text + " {\n  return callMCPTool(" + name + ", input);\n}\n"
	}
	p.writeSignatures(t, types, ";")
	p.writeParts("export function ", t.TypeScript, "(...args: unknown[]): Promise<any> {\n")
	p.writeParts("  return callMCPTool(", name, ", named(args, [")
	for i, q := range params {
		if i > 0 {
			p.writeParts(", ")
		}
		p.writeParts(quoteString(q.name))
	}
	p.writeParts("]));\n}\n")
	return p.b.String()
}
