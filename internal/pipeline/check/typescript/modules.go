package typescript

import (
	"slices"
	"strings"

	"retort/internal/core"
)

// moduleKind is the kind of module that an import specifier refers to.
type moduleKind int

const (
	moduleOther   moduleKind = iota // node:path and the like, or nothing at all
	moduleAll                       // ./servers
	moduleServer                    // ./servers/github
	moduleTool                      // ./servers/github/listIssues
	moduleClient                    // ./client
	moduleSkill                     // ./skills/weekly-report
	moduleSkills                    // ./skills
	moduleMissing                   // in ./servers, but there is no such server or tool
)

// importedModule describes the module that an import specifier refers to.
type importedModule struct {
	kind      moduleKind
	canonical string // the specifier under which the module is checked and loaded
	server    *core.ToolServer
	tool      *core.Tool
	missing   string // the name that does not exist
	skill     string // its name, if it can be one
}

// resolveSpecifier returns the module that an import specifier refers to. It accepts many spellings, such as
// ./servers/x, servers/x, ../servers/x and /servers/x/index.ts. The server may have its original name, or one in
// camelCase or snake_case.
func resolveSpecifier(specifier string, tools *core.Toolset) importedModule {
	path, inTree := treePath(specifier)
	switch {
	case !inTree && path == specifier:
		return importedModule{canonical: specifier}
	case path == "client" || path == "servers/client":
		return importedModule{kind: moduleClient, canonical: "./client"}
	case path == "servers":
		return importedModule{kind: moduleAll, canonical: "./servers/index"}
	case strings.HasPrefix(path, "servers/"):
		return resolveServer(strings.TrimPrefix(path, "servers/"), tools)
	case path == "skills":
		return importedModule{kind: moduleSkills, canonical: "./skills/index"}
	case strings.HasPrefix(path, "skills/"):
		return skillModule(strings.TrimPrefix(path, "skills/"))
	}
	return importedModule{canonical: specifier}
}

// treePath returns a specifier without leading elements such as ./ and ../, without a file suffix such as .ts, and
// without /index at the end. It replaces generatedFolder at the beginning by servers. inTree reports whether the
// specifier had such leading elements or begins with servers, skills or generatedFolder.
func treePath(specifier string) (path string, inTree bool) {
	path = specifier
	for {
		trimmed := path
		for _, lead := range []string{"./", "../", "/"} {
			trimmed = strings.TrimPrefix(trimmed, lead)
		}
		if trimmed == path {
			break
		}
		path, inTree = trimmed, true
	}
	for _, suffix := range []string{".d.ts", ".ts", ".mts", ".js", ".mjs", ".cjs"} {
		if strings.HasSuffix(path, suffix) {
			path = strings.TrimSuffix(path, suffix)
			break
		}
	}
	path = strings.TrimSuffix(path, "/")
	path = strings.TrimSuffix(path, "/index")
	if rest, ok := strings.CutPrefix(path, generatedFolder); ok && (rest == "" || rest[0] == '/') {
		path, inTree = "servers"+rest, true
	}
	return path, inTree || path == "servers" || path == "skills" || strings.HasPrefix(path, "servers/") || strings.HasPrefix(path, "skills/")
}

// generatedFolder is the folder from which programs that were written for other MCP clients import the generated
// functions that call tools.
const generatedFolder = ".claude/mcp-api"

func resolveServer(name string, tools *core.Toolset) importedModule {
	if s, ok := tools.FindServer(name); ok {
		return serverModule(s)
	}
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		if s, ok := tools.FindServer(name[:i]); ok {
			if t, ok := s.FindTool(name[i+1:]); ok && slices.Contains([]string{t.Name, t.TypeScript, t.Python}, name[i+1:]) {
				return importedModule{kind: moduleTool, canonical: "./" + toolPath(s, t), server: s, tool: t}
			}
			return importedModule{kind: moduleMissing, canonical: "./servers/" + name, server: s, missing: name[i+1:]}
		}
		name = name[:i]
	}
	return importedModule{kind: moduleMissing, canonical: "./servers/" + name, missing: name}
}

func serverModule(s *core.ToolServer) importedModule {
	return importedModule{kind: moduleServer, canonical: "./servers/" + s.TypeScript + "/index", server: s}
}

// skillModule returns the module that a path below ./skills/ refers to, such as the skill's name, its identifier, or
// its code file. It does not check whether the skill exists.
func skillModule(path string) importedModule {
	name, file, _ := strings.Cut(path, "/")
	if core.ValidSkillName(name) != nil {
		name = core.SkillName(name)
	}
	if file != "" && file != "skill" || core.ValidSkillName(name) != nil {
		return importedModule{canonical: "./skills/" + path}
	}
	return importedModule{kind: moduleSkill, canonical: "./skills/" + name, skill: name}
}

// toolPath returns the path of a tool's declaration file without suffix. A tool named index gets a different file
// name, because the file index declares the server itself.
func toolPath(s *core.ToolServer, t *core.Tool) string {
	name := t.TypeScript
	if name == "index" {
		name = "index_"
	}
	return "servers/" + s.TypeScript + "/" + name
}
