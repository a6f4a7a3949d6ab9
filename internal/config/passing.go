package config

import (
	"net/url"
	"path/filepath"
	"strings"
)

// PassThrough configures what passes between a server and the client apart from tool calls.
type PassThrough struct {
	Expose      Exposure  // "": ExposeSearch
	Elicitation Allowance // whether the server may ask the user questions; "": Allow
	Sampling    Allowance // whether the server may use the client's model; "": Deny
	Roots       []string  // URIs that the server receives when it asks for its roots
}

// Exposure selects how clients see the tools, prompts and resources of a server.
type Exposure string

// The values of Exposure. With ExposeSearch, clients use a server only through Retort's own tools. With ExposeDirect,
// they also see the server's tools, prompts and resources unchanged.
const (
	ExposeSearch Exposure = "search" // tools are used through search_tools, programs and call_tool only
	ExposeDirect Exposure = "direct" // tools also appear unchanged, next to Retort's own tools
)

// Allowance selects whether a server may do something.
type Allowance string

// The values of an Allowance.
const (
	Allow Allowance = "allow"
	Deny  Allowance = "deny"
)

func (p *PassThrough) fieldReaders() []fieldReader {
	return []fieldReader{
		{"expose", "Whether clients see the tools, prompts and resources of the server only through search, or also directly.", readOneOf(&p.Expose, ExposeSearch, ExposeDirect)},
		{"elicitation", "Whether the server may ask the person at the client. The default is allow.", readOneOf(&p.Elicitation, Allow, Deny)},
		{"sampling", "Whether the server may use the client's model. The default is deny.", readOneOf(&p.Sampling, Allow, Deny)},
		{"roots", "Folders or URIs that the server receives when it asks for roots.", readList(&p.Roots, readRoot)},
	}
}

// readRoot returns a reader for a folder, given as an absolute path, a path relative to the file's folder, or a
// URI.
func readRoot(v *string) settingReader {
	root := readText(v)
	return root.checkedBy(func(r *nodeReader, n *valueNode) {
		var s string
		if readChecked(&s, "a path or a URI", func(s string) bool { return s != "" && !strings.ContainsRune(s, 0) }).read(r, n); s == "" {
			return
		}
		if scheme, _, ok := strings.Cut(s, "://"); ok && len(scheme) > 1 {
			*v = s
			return
		}
		p := filepath.ToSlash(r.resolvePath(s))
		if !strings.HasPrefix(p, "/") {
			p = "/" + p // C:/folder
		}
		*v = (&url.URL{Scheme: "file", Path: p}).String()
	})
}
