package source

import (
	"regexp"
	"strings"
	"sync"

	"retort/internal/core"
)

// RecognizedLanguage holds the language that a program was recognised as, because the request named none.
type RecognizedLanguage struct {
	Language core.Language // TypeScript or Python
	Sure     bool          // nothing in the text speaks for the other language
}

// leastPython is the minimum score with which a text counts as Python. Syntax that both languages have, such as a
// call of a method named get, can give a lower score.
const leastPython = 2

// maxRecognized bounds how much of a text is examined, in bytes.
const maxRecognized = 16 << 10

// RecognizeLanguage determines a program's language from its text: from the info string of a Markdown fence or,
// without one, from syntax that only one language has. A text without any Python syntax counts as TypeScript.
func RecognizeLanguage(code string) RecognizedLanguage {
	if lang := fenceLanguage(code); lang != "" {
		return RecognizedLanguage{lang, true}
	}
	pieces := ProgramRanges(code)
	text := pieces[len(pieces)-1].Code
	text = text[:min(len(text), maxRecognized)]
	python, script := pythonSyntax().scoreText(withoutPython(text)), scriptSyntax().scoreText(withoutScript(text))
	if python > script && python >= leastPython {
		return RecognizedLanguage{core.Python, script == 0}
	}
	return RecognizedLanguage{core.TypeScript, python == 0 && script > 0}
}

// fenceLanguage returns the language that the first Markdown fence in a text names, or "".
func fenceLanguage(code string) core.Language {
	at, _ := openingFence(strings.SplitAfter(code, "\n"))
	if at < 0 {
		return ""
	}
	_, info := ParseFence(strings.SplitAfter(code, "\n")[at])
	word, _, _ := strings.Cut(strings.ToLower(info), " ")
	switch word {
	case "py", "python", "python3":
		return core.Python
	case "ts", "typescript":
		return core.TypeScript
	case "js", "javascript", "mjs":
		return core.JavaScript
	}
	return ""
}

// languageEvidence holds a pattern that indicates a language, and the weight by which a match raises the score of
// that language.
type languageEvidence struct {
	weight  int
	pattern *regexp.Regexp
}

type syntaxOf []languageEvidence

// scoreText returns the sum of the weights of the patterns that occur in a text.
func (s syntaxOf) scoreText(text string) int {
	total := 0
	for _, e := range s {
		if e.pattern.MatchString(text) {
			total += e.weight
		}
	}
	return total
}

// pythonSyntax returns patterns that match Python but not TypeScript, for a text without strings and comments. They
// are compiled on first use, because every Retort process loads this package but few need the patterns.
var pythonSyntax = sync.OnceValue(func() syntaxOf {
	return syntaxOf{
		{4, regexp.MustCompile(`(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(`)},
		{4, regexp.MustCompile(`(?m)^[ \t]*class[ \t]+\w+[ \t]*(?:\([^)\n]*\))?[ \t]*:`)},
		{4, regexp.MustCompile(`(?m)^[ \t]*(?:if|elif|while|with|except|match|case|async with)\b[^\n{};]*:[ \t]*$`)},
		{4, regexp.MustCompile(`(?m)^[ \t]*(?:else|try|finally|except)[ \t]*:`)},
		{4, regexp.MustCompile(`(?m)^[ \t]*(?:async[ \t]+)?for[ \t]+[\w, \t()*]+[ \t]in[ \t][^\n{};]*:`)},
		{4, regexp.MustCompile(`(?m)^[ \t]*from[ \t]+[\w.]+[ \t]+import\b`)},
		{3, regexp.MustCompile(`(?m)^[ \t]*import[ \t]+\w[\w.]*(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*\w[\w.]*(?:[ \t]+as[ \t]+\w+)?)*[ \t]*$`)},
		{4, regexp.MustCompile(`[\w)\]}"'][ \t\n]+for[ \t]+\w+(?:[ \t]*,[ \t]*\w+)*[ \t]+in[ \t]`)},
		{3, regexp.MustCompile(`[\w)\]}"'][ \t]+(?:not[ \t]+in|is[ \t]+not|is|and|or)[ \t]+[\w(\["'{-]`)},
		{3, regexp.MustCompile(`(?:^|[=(,\[:]|\b(?:if|and|or|return|while))[ \t]*not[ \t]+[\w(]`)},
		{3, regexp.MustCompile(`\b(?:None|True|False)\b`)},
		{3, regexp.MustCompile(`\blambda\b[^:\n]*:`)},
		{3, regexp.MustCompile(`\b[fFrRbB]{1,2}""`)}, // a string with a prefix, whose text was removed
		{3, regexp.MustCompile(`:=`)},
		{3, regexp.MustCompile(`(?m)^[ \t]*(?:pass|raise(?:[ \t]+\w.*)?|(?:global|nonlocal|del|assert)[ \t]+\w[^=;]*)$`)},
		{
			2,
			regexp.MustCompile(
				`(?m)(?:^|[^.\w])(?:len|print|range|str|int|float|dict|list|set|tuple|sorted|enumerate|zip|isinstance|getattr|setattr|hasattr|sum|eval|repr|open)\(`,
			),
		},
		{2, regexp.MustCompile(`(?m)(?:^|[^.\w])(?:read_file|write_file|list_files|search_tools|load_skill|call_mcp_tool|exec_command)\(`)},
		{2, regexp.MustCompile(`\bjson\.(?:loads|dumps|load|dump)\(|\basyncio\.|\bre\.(?:sub|findall|match|search|compile)\(`)},
		{2, regexp.MustCompile(`[(,][ \t\n]*[a-z_]\w*=[^=>]`)}, // keyword arguments
		{1, regexp.MustCompile(`\w\.(?:get|items|keys|values|append|split|join|strip|format|lower|upper)\(`)},
		{1, regexp.MustCompile(`\b[a-z]+\.[a-z]+_[a-z_]+\(`)},
		{1, regexp.MustCompile(`(?m)^\w+[ \t]*=[ \t]*[^=> \t][^;]*$`)},
		{3, regexp.MustCompile(`[(,][ \t\n]*\*\*\w|\b__(?:import|builtins|name)__\b`)},
		{2, regexp.MustCompile(`(?m)^exec\((?:[^"'\n]|["']{2}\.)`)},       // of TypeScript's, the first argument is a text
		{2, regexp.MustCompile(`(?m)^result[ \t]*=[ \t]*[^=> \t][^;]*$`)}, // the result of a program
		{1, regexp.MustCompile(`(?m)^[ \t]*#(?:[ \t!]|$)`)},
	}
})

// scriptSyntax returns patterns that match TypeScript or JavaScript but not Python. They are compiled on first use.
var scriptSyntax = sync.OnceValue(func() syntaxOf {
	return syntaxOf{
		{4, regexp.MustCompile(`(?m)^return\b`)}, // at the top level
		{4, regexp.MustCompile(`\b(?:const|let|var)[ \t]+[\w$\[{]`)},
		{4, regexp.MustCompile(`=>`)},
		{
			4,
			regexp.MustCompile(
				`(?m)^[ \t]*(?:export[ \t]+(?:default|const|let|async|function|class|type|interface|\{|\*)|(?:declare|interface|enum|namespace|abstract)[ \t]+\w)`,
			),
		},
		{4, regexp.MustCompile(`\bfunction\b[ \t]*\*?[ \t]*\w*[ \t]*[(<]`)},
		{4, regexp.MustCompile(`(?m)^[ \t]*import[ \t]*(?:type[ \t]+)?[\w$*{][^;\n]*\bfrom[ \t]*["']|^[ \t]*import[ \t]*["']`)},
		{4, regexp.MustCompile(`===|!==|&&|\|\||\?\.|\?\?|\+\+[;)\n]`)},
		{3, regexp.MustCompile(`\bnew[ \t]+[A-Z]\w*[ \t]*[(<]`)},
		{3, regexp.MustCompile(`;[ \t]*(?:\n|$)`)},
		{
			3,
			regexp.MustCompile(`\)[ \t]*\{[ \t]*\n|\}[ \t]*(?:else|catch|finally|while)\b|\b(?:if|while|for|switch|catch)[ \t]*\([^\n]*\)[ \t]*\{`),
		},
		{
			3,
			regexp.MustCompile(
				`\b(?:null|undefined|typeof|instanceof|console\.\w+|Promise\.\w+|Object\.\w+|JSON\.(?:parse|stringify)|Math\.[a-z]\w+)\b`,
			),
		},
		{3, regexp.MustCompile(`[=(,:\[][ \t]*!\w|\bthrow[ \t]+\w|\bcatch[ \t]*[({]`)},
		{3, regexp.MustCompile("`")},
		{2, regexp.MustCompile(`\b(?:true|false)\b`)},
		{2, regexp.MustCompile(`\(\{[ \t\n]*[\w$]+[ \t]*[,:}]`)},
		{2, regexp.MustCompile(`\{[ \t\n]*[a-zA-Z_$][\w$]*[ \t]*:[ \t]*[^\n]`)}, // an object with a name for a key, not a text
		{2, regexp.MustCompile(`\b[a-z]+[A-Z]\w*\(`)},
		{1, regexp.MustCompile(`\.(?:length|map|filter|push|slice|includes|forEach|reduce|toString|then)\b`)},
		{1, regexp.MustCompile(`\bawait\b`)},
		{1, regexp.MustCompile(`(?m)^[ \t]*(?://|/\*)`)},
	}
})

// withoutPython returns a text without Python comments and the contents of Python strings. It also removes TypeScript
// comments, because the prose in them may look like Python.
func withoutPython(text string) string {
	return stripText(commentLine().ReplaceAllString(text, ""), func(rest string) (opening string, multiline bool) {
		switch {
		case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, `'''`):
			return rest[:3], true
		case rest[0] == '"', rest[0] == '\'':
			return rest[:1], false
		case rest[0] == '`': // of TypeScript
			return rest[:1], true
		}
		return "", false
	}, "#")
}

// commentLine matches TypeScript comments: block comments, and lines that consist only of a comment.
var commentLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^[ \t]*//.*$|(?s)/\*.*?\*/`) })

// withoutScript returns a text without the contents of TypeScript strings and without comments.
func withoutScript(text string) string {
	text = hashLine().ReplaceAllString(text, "")
	return stripText(text, func(rest string) (opening string, multiline bool) {
		switch {
		case strings.HasPrefix(rest, "/*"):
			return "/*", true
		case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, `'''`): // of Python
			return rest[:3], true
		case rest[0] == '"', rest[0] == '\'':
			return rest[:1], false
		case rest[0] == '`':
			return rest[:1], true
		}
		return "", false
	}, "//")
}

// hashLine matches a line that is entirely a Python comment.
var hashLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^[ \t]*#[^\n]*$`) })

// stripText returns a text without comments and without the contents of strings. comment is the text with which a
// comment begins; the comment ends with the line. The function opens returns the opening quotes of a string, or "" if
// no string begins there.
func stripText(text string, opens func(rest string) (opening string, multiline bool), comment string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		opening, multiline := opens(rest)
		switch {
		case opening != "":
			n := stringEnd(rest, opening, multiline)
			b.WriteString(quotesOf(opening))
			i += n
		case strings.HasPrefix(rest, comment):
			i += lineEnd(rest)
		default:
			b.WriteByte(rest[0])
			i++
		}
	}
	return b.String()
}

// quotesOf returns what remains of a string or block comment whose contents are removed: a pair of quotes for a
// string, and nothing for a block comment.
func quotesOf(opening string) string {
	switch opening {
	case "`":
		return "``"
	case "/*":
		return ""
	}
	return `""`
}

// stringEnd returns the length in bytes of the string literal at the start of a text. A string without a closing
// quote ends with its line, or with the text if such strings may span lines.
func stringEnd(text, opening string, multiline bool) int {
	closing := opening
	if opening == "/*" {
		closing = "*/"
	}
	for i := len(opening); i < len(text); i++ {
		switch {
		case text[i] == '\\' && opening != "/*":
			i++
		case !multiline && text[i] == '\n':
			return i
		case strings.HasPrefix(text[i:], closing):
			return i + len(closing)
		}
	}
	return len(text)
}

func lineEnd(text string) int {
	if at := strings.IndexByte(text, '\n'); at >= 0 {
		return at
	}
	return len(text)
}

// MarkGuessed adds a hint to e that the language was only guessed from the program, if a wrong guess may be the cause
// of the error.
func (r RecognizedLanguage) MarkGuessed(e *core.Error) *core.Error {
	if e.Kind != core.KindSyntax && (r.Sure || e.Kind != core.KindType) {
		return e
	}
	other := core.Python
	if r.Language == core.Python {
		other = core.TypeScript
	}
	c := *e
	c.Hint = strings.TrimPrefix(c.Hint+"; ", "; ") + "no language was given, and by its syntax the program was read as " + string(r.Language) +
		": if it is " +
		string(other) +
		", set language: \"" +
		string(other) +
		"\""
	return &c
}
