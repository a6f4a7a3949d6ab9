package internal_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// homePaths parses package home and returns the paths that the methods of one of its types build from string literals.
// Each path maps to the description in the doc comment of its method.
func homePaths(t *testing.T, typeName string) map[string]string {
	t.Helper()
	paths := map[string]string{}
	for _, d := range parseGo(t, "internal/home/home.go").Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Recv.List[0].Type.(*ast.Ident).Name != typeName || !f.Name.IsExported() {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			names := literalTexts(call.Args)
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "join" && len(names) > 0 {
				paths[strings.Join(names, "/")] = placeText(t, f)
			}
			return true
		})
	}
	return paths
}

// placeText returns what the first sentence of a method's doc comment says about the path that the method returns.
func placeText(t *testing.T, f *ast.FuncDecl) string {
	t.Helper()
	text := strings.Join(strings.Fields(f.Doc.Text()), " ")
	for _, opening := range []string{"directory of ", "file of ", "path of "} {
		if rest, found := strings.CutPrefix(text, f.Name.Name+" returns the "+opening); found {
			first, _, _ := strings.Cut(rest, ". ")
			return strings.ToUpper(first[:1]) + strings.TrimSuffix(first[1:], ".") + "."
		}
	}
	t.Errorf("home.%s: the doc comment does not begin with \"%s returns the directory of\" or \"file of\"", f.Name.Name, f.Name.Name)
	return text
}

// TestStoredPathsAreDescribed checks that docs/security/data-flow.md describes every path of package home.
func TestStoredPathsAreDescribed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/security/data-flow.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := homePaths(t, "Dir")
	maps.Copy(all, homePaths(t, "User"))
	for path := range all {
		if !strings.Contains(string(page), "`"+path) && !strings.Contains(string(page), "/"+path) {
			t.Errorf("docs/security/data-flow.md does not mention %s", path)
		}
	}
}

func placesPage(t *testing.T) string {
	return "# Files and folders\n" + writtenBy + `
[Where data goes](../security/data-flow.md) says for each path how it is protected, how long it is kept and what erases it.

## Configuration

| file | |
|---|---|
| ` + "`--config FILE`" + ` | The files that you name: servers in a client's format, or settings if the name ends with ` + "`.yaml` or `.yml`" + `. |
| ` + "`.mcp.json`" + ` | Without ` + "`--config`" + `: the servers of the project in the working directory. |
| ` + "`~/.config/retort/mcp.json`" + ` | Without ` + "`--config`" + `, and if there is no ` + "`.mcp.json`" + `: your own servers. |
| ` + "`retort.yaml`" + ` | The settings: next to each file with servers and, without ` + "`--config`" + `, in the working directory. They are not read if ` + "`--config`" + ` names a YAML file. |
| ` + "`~/.config/retort/retort.yaml`" + ` | Your own settings. They are read if none of the files above has settings. |

` + "`retort config show`" + ` names the files that were read.

## The data directory

It is ` + "`.retort/`" + ` next to the configuration file of a project, otherwise ` + "`~/.local/share/retort`. `--home DIR`" + ` names another
one. In it are:

` + placesTable(homePaths(t, "Dir")) + `
The sandboxes ` + "`docker` and `gvisor`" + ` prepare files in folders with their names. Kernels and prepared virtual machines are in
` + "`~/.cache/retort/machines`" + `, or in the cache folder of your system.

## The key directory

It is ` + "`~/.local/share/retort`" + `, wherever the data directory is. It holds what must not be in a project, because the servers
of a project could write there:

` + placesTable(homePaths(t, "User"))
}

func placesTable(paths map[string]string) string {
	var b strings.Builder
	b.WriteString("| path | |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", path, paths[path])
	}
	return b.String()
}

// variable is an environment variable that Retort reads. The order of variables is that of the page.
type variable struct{ name, text string }

var variables = []variable{
	{"XDG_CONFIG_HOME", "The folder of configurations, in place of `~/.config`."},
	{"XDG_DATA_HOME", "The folder of data, in place of `~/.local/share`, for the data directory. Keys stay in `~/.local/share/retort`."},
	{"XDG_RUNTIME_DIR", "Where the sockets of Docker and Podman are searched for."},
	{"CLAUDE_CONFIG_DIR", "Where the file of Claude Code is."},
	{"CODEX_HOME", "Where the file of Codex is, in place of `~/.codex`."},
	{"APPDATA", "Windows: where the files of clients are."},
	{"DOCKER_HOST", "The Docker daemon, if the setting `docker.host` is empty."},
	{"DOCKER_CONTEXT", "The context of the `docker` command that names the daemon."},
	{"DOCKER_CONFIG", "The folder of the `docker` command, in place of `~/.docker`."},
	{"DBUS_SESSION_BUS_ADDRESS", "Linux: without it, the system's keyring is not used."},
	{"NO_COLOR", "With any value, output has no colours."},
	{"BROWSER", "The command that opens the address of a login."},
	{"PATH", "Where commands and interpreters are searched for."},
	{"GOMEMLIMIT", "The soft memory limit of `retort serve`, in place of the setting `memory`."},
	{"GOMAXPROCS", "The number of processors that Retort uses at the same time."},
	{"GOGC", "The setting of Go's garbage collector. If it is set, Retort does not choose one."},
}

// libraryVariables holds the rows of variables that libraries read. variablesRead does not find these variables.
const libraryVariables = "" +
	"| `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY` | The proxy for all connections of Retort to other machines, except those to PostgreSQL and those of sandboxed programs. A model with an `http` address is reached directly. |\n" +
	"| `SSL_CERT_FILE`, `SSL_CERT_DIR` | Linux: root certificates, in place of the system's. |\n" +
	"| `HOME` | Your home directory (Windows: `USERPROFILE`). The keys and the files of clients are in it. |\n" +
	"| `XDG_CACHE_HOME` | Linux: the folder of caches, in place of `~/.cache`. The virtual machines are in it. |\n" +
	"| `TMPDIR` | The folder of temporary files, in place of `/tmp` (Windows: `TMP`). |\n" +
	"| `PGPASSWORD`, `PGSSLMODE`, `PGSSLROOTCERT`, `PGPASSFILE` and other `PG…` | What the address in `audit.store` does not say about the connection to PostgreSQL. |\n"

func environmentPage(t *testing.T) string {
	t.Helper()
	read := variablesRead(t)
	var b strings.Builder
	for _, v := range variables {
		if !read[v.name] {
			t.Errorf("%s is described but not read", v.name)
		}
		delete(read, v.name)
		fmt.Fprintf(&b, "| `%s` | %s |\n", v.name, v.text)
	}
	for name := range read {
		t.Errorf("%s is read but not described; add it to variables in internal/reference_places_test.go", name)
	}
	return "# Environment variables\n" + writtenBy + `
Retort has no variables of its own: everything is in the [settings](settings.md), where ` + "`${NAME}`" + ` stands for the value of a
variable. These variables of the system and of other programs are read:

| variable | |
|---|---|
` + b.String() + libraryVariables + `
Programs in a sandbox see none of your variables. [Servers](../guides/servers.md) says which of them a server gets.
`
}

var variableName = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)

// variableReaders are functions that read the environment variable in their first argument.
var variableReaders = []string{"Getenv", "LookupEnv", "or", "userDir", "userFolder"}

// variablesRead returns the names of the environment variables that the code reads.
func variablesRead(t *testing.T) map[string]bool {
	t.Helper()
	read := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || strings.HasPrefix(s.dir, "internal/devel") || strings.HasSuffix(s.dir, "test") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 && slices.Contains(variableReaders, calledName(call)) {
				if l, ok := call.Args[0].(*ast.BasicLit); ok && l.Kind == token.STRING {
					if name, err := strconv.Unquote(l.Value); err == nil && variableName.MatchString(name) {
						read[name] = true
					}
				}
			}
			return true
		})
	}
	return read
}

// calledName returns the name of the called function or method, without its package or receiver.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
