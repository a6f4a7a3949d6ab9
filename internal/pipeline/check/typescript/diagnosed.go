package typescript

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check/source"
)

// Numbers of TypeScript diagnostics, grouped by how toFinding handles them.
var (
	// unknownName lists diagnostics about names that do not exist.
	unknownName = []int{2304, 2552, 2580, 2581, 2582, 2583, 2584, 2591, 2592, 2593, 2662, 2663, 2693, 2867, 2868, 18004}
	// unknownImport lists diagnostics about imports of a module, or of a member of a module, that does not exist.
	unknownImport = []int{1192, 2305, 2306, 2307, 2613, 2614, 2724, 2732, 2792, 2834, 2835, 7016}
	// brokenProgram lists errors in JavaScript's grammar that only the type checker finds, not the parser.
	brokenProgram = []int{
		1013, 1014, 1047, 1048, 1049, 1051, 1052, 1053, 1054, 1091, 1100, 1101, 1102, 1103, 1104, 1105, 1106, 1107, 1113, 1114, 1115, 1116,
		1121, 1123, 1155, 1156, 1163, 1166, 1172, 1182, 1186, 1187, 1188, 1189, 1190, 1196, 1197, 1210, 1212, 1213, 1214, 1215, 1233, 1308,
		1312, 1313, 1318, 1346, 1347, 1348, 1349, 1350, 1359, 2300, 2337, 2376, 2377, 2401, 2440, 2451, 2466, 2480, 2481,
		17004, 17005, 17009, 17011, 18030, 18036,
	}
	awaitOutside = 1308
	noMember     = 2339
	// harmlessCodes lists diagnostics that correct programs can cause. They are ignored.
	harmlessCodes = []int{1108, 1375, 1378, 1431, 1432, 2669, 7027, 7028, 2578}
)

// toFinding converts a diagnostic of the compiler to a finding. It returns false if the diagnostic is to be ignored.
func (p *scriptProgram) toFinding(d tsc.Diagnostic) (checkFinding, bool) {
	message, _, _ := strings.Cut(d.Message, " Do you need to ") // change compiler settings, which users cannot do
	f := checkFinding{message: message, start: d.Start, end: d.End}
	switch {
	case slices.Contains(harmlessCodes, d.Code), d.Widened:
		return f, false
	case d.Code == noMember && !d.Erased && strings.Contains(message, "on type 'Promise<"):
		f.kind = core.KindType
		f.hint = "the call returns a Promise: put await before it, as in (await …)." + p.source.Text()[d.Start:d.End]
	case d.Code == noMember && !d.Erased && strings.HasSuffix(message, "on type '"+pageReader+"'."):
		f.kind = core.KindType // a server of this name may not have listed its tools yet
		f.hint = "pages is a function of Retort, and there is no server of this name"
	case d.Argument != nil && !d.Open:
		p.explainArgument(&f, d)
	case d.Member != nil && !d.Erased:
		p.explainMember(&f, d)
	case d.Erased:
	case slices.Contains(unknownName, d.Code) && !p.isTypeofGuard(d):
		f.kind = core.KindType
		f.hint, f.unknown = p.nameHint(d), p.source.Text()[d.Start:d.End]
	case p.shadowedServer(d) != nil:
		f.kind = core.KindType
		f.hint = builtinHint(p.shadowedServer(d))
	case slices.Contains(unknownImport, d.Code):
		f.kind = core.KindType
	case slices.Contains(brokenProgram, d.Code):
		f.kind = core.KindSyntax
		if d.Code == awaitOutside {
			f.hint = "make the function async"
		}
	}
	return f, true
}

// pageReader is the name of the type that pages has in the declarations of the globals.
const pageReader = "PageReader"

// explainArgument completes the finding for an argument of the wrong type. In a call of a tool or skill, such an
// argument is a reason to refuse the program.
func (p *scriptProgram) explainArgument(f *checkFinding, d tsc.Diagnostic) {
	t := p.declaredTool(d.Argument)
	if t == nil && d.Argument.Name == pageReader && d.Passed != nil {
		t = p.declaredTool(d.Passed) // pages takes the arguments of this tool
	}
	if t == nil {
		if strings.HasPrefix(d.Argument.File, "/skills/") {
			f.kind = core.KindType
			f.hint = "load_skill shows how " + d.Argument.Name + " is called"
		}
		return
	}
	f.kind, f.server, f.tool = core.KindType, t.Server, t.Name
	f.hint = p.toolSignature(t)
	if name := p.source.Text()[d.Start:d.End]; isWord(name) && d.Code == 2322 {
		f.message = name + ": " + f.message
	}
}

// isWord reports whether a text can be the name of a property.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(
		s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '$' },
	)
}

// isTypeofGuard reports whether the program checks that the unknown name in a diagnostic exists, by applying typeof
// to it.
func (p *scriptProgram) isTypeofGuard(d tsc.Diagnostic) bool {
	use := p.source.Facts().Globals[p.source.Text()[d.Start:d.End]]
	return use != nil && use.Asked
}

// shadowedServer returns the server that the program probably means in a case like console.search(…). There, a
// built-in object has the name of a server, and only the server has the member. It returns nil in other cases.
func (p *scriptProgram) shadowedServer(d tsc.Diagnostic) *core.ToolServer {
	text := p.source.Text()
	for _, s := range p.tools.Servers {
		if p.builtins[s.TypeScript] && strings.HasSuffix(text[:d.Start], s.TypeScript+".") {
			if _, ok := s.FindTool(text[d.Start:d.End]); ok {
				return s
			}
		}
	}
	return nil
}

func builtinHint(s *core.ToolServer) string {
	return fmt.Sprintf("%[1]s is a built-in here; import the server under another name: import * as %[1]sServer from './servers/%[1]s'", s.TypeScript)
}

// explainMember completes the finding for a name that a program imports from a module which does not export it. If
// the module belongs to a server, the finding says that the server has no such tool.
func (p *scriptProgram) explainMember(f *checkFinding, d tsc.Diagnostic) {
	s := p.serverOf(d.Member.File)
	if s == nil {
		f.kind = core.KindType
		return
	}
	f.kind, f.server = core.KindToolNotFound, s.Name
	f.message, f.hint = p.nameErrors().NoTool(s, d.Member.Name)
}

var serverFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/servers/([^/]+)/`)
})

func (p *scriptProgram) serverOf(file string) *core.ToolServer {
	m := serverFile().FindStringSubmatch(file)
	if m == nil {
		return nil
	}
	for _, s := range p.tools.Servers {
		if s.TypeScript == m[1] {
			return s
		}
	}
	return nil
}

func (p *scriptProgram) declaredTool(target *tsc.Target) *core.Tool {
	s := p.serverOf(target.File)
	if s == nil {
		return nil
	}
	for _, t := range s.Tools {
		if t.TypeScript == target.Name {
			return t
		}
	}
	return nil
}

// nameHint returns a hint on what to write instead of a name that does not exist.
func (p *scriptProgram) nameHint(d tsc.Diagnostic) string {
	name := p.source.Text()[d.Start:d.End]
	var servers, tools []string
	for _, s := range p.tools.Servers {
		if s.TypeScript == name {
			return builtinHint(s)
		}
		servers = append(servers, s.TypeScript)
		for _, t := range s.Tools {
			if t.TypeScript == name {
				tools = append(tools, s.TypeScript+"."+name)
			}
		}
	}
	if len(tools) > 0 {
		return "did you mean " + source.OrList(tools[:min(3, len(tools))]) + "?"
	}
	if near := core.NearestNames(name, servers, 2); len(near) > 0 && !strings.Contains(d.Message, "Did you mean") {
		return "did you mean the server " + source.OrList(near) + "?"
	}
	switch name {
	case "XMLHttpRequest", "WebSocket", "EventSource":
		return noNetwork
	case "exec":
		return "programs can start only the commands that the setting commands allows; look for a tool with search_tools"
	case "window", "document", "localStorage":
		return "programs do not run in a browser"
	}
	return "names come from imports, declarations in the program, and the servers; find tools with search_tools"
}

func (p *scriptProgram) nameErrors() source.NameErrors {
	return source.NameErrors{
		Server:    func(s *core.ToolServer) string { return s.TypeScript },
		Tool:      func(t *core.Tool) string { return t.TypeScript },
		Signature: p.toolSignature,
	}
}

// toolSignature returns the signature with which programs call a tool. If the tool can also be called with positional
// arguments, a second line shows that.
func (p *scriptProgram) toolSignature(t *core.Tool) string {
	signature := bindings.RenderStub(p.tools, t, core.TypeScript, bindings.Signature)
	if order := bindings.PositionalCall(p.tools, t); order != "" {
		signature += "\nor " + order
	}
	return signature
}
