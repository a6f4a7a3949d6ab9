package redact

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"retort/internal/privacy/pii"
	"retort/internal/privacy/vault"
)

// surroundings says what kind of text contains tokens in one string. It decides whether values may replace the tokens.
type surroundings uint8

const (
	prose   surroundings = iota // a text for people to read, or a list of addresses: values replace the tokens
	unknown                     // another text: values replace the tokens if a person agrees
	carrier                     // an address, a host or code that could send or compute with values: refused
)

// carrierWords lists words in argument names that say that the receiver interprets the text, for example as a URL, a
// host name or code.
var carrierWords = []string{
	"url", "uri", "href", "link", "endpoint", "webhook", "host", "hostname", "domain", "code", "script", "command",
	"cmd", "sql", "expression", "log", "statement", "soql", "jql", "cypher", "graphql", "template", "formula",
	"regex", "website", "proxy",
}

// proseWords lists words in argument names that say that the argument is prose for people to read.
var proseWords = []string{
	"body", "text", "message", "messages", "msg", "content", "contents", "description", "comment", "comments", "note",
	"notes",
	"subject", "title", "summary", "html", "markdown", "caption", "reply", "prompt", "remark", "remarks", "details",
	"greeting", "question", "answer", "reason", "headline", "paragraph", "instructions", "plain", "memo", "feedback",
	"review", "letter", "draft", "post", "agenda", "minutes", "invitation", "announcement", "explanation", "response",
	"resolution", "blurb", "bio", "signature", "footer", "header",
}

// ofName returns what kind of text an argument is, judged by its name. If several words of the name are in carrierWords
// or proseWords, the last one decides. So link_text is prose, and text_link is a carrier. A name without such words is
// unknown.
func ofName(name string) surroundings {
	for _, word := range slices.Backward(splitName(name)) {
		switch {
		case slices.Contains(carrierWords, word):
			return carrier
		case slices.Contains(proseWords, word):
			return prose
		}
	}
	return unknown
}

// splitName splits an argument name into its lower-case words: callback_url and callbackUrl both become "callback"
// and "url".
func splitName(name string) []string {
	var b strings.Builder
	for i, c := range name {
		if 'A' <= c && c <= 'Z' && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return strings.FieldsFunc(strings.ToLower(b.String()), func(c rune) bool { return strings.ContainsRune(" _-.", c) })
}

// judgeText returns what kind of text contains the tokens of a string. by is what the name and the schema of the
// argument say. inner is the string in JSON, without its quotes. The text is read once for all tokens. Tokens of values
// that the model wrote do not count, because the model could write these values anywhere.
func judgeText(by surroundings, inner []byte, tokens []pii.TypedSpan, entries []vault.TokenEntry) surroundings {
	text := markTokens(inner, tokens, entries)
	switch {
	case text == "":
		return prose
	case by == carrier:
		return carrier
	case isAddressList(text):
		return prose
	case isAddressAround(text), isCodeAround(text):
		return carrier
	case by == prose:
		return prose
	case beginsWithURL.MatchString(text), queryAround.MatchString(text):
		return carrier
	}
	return unknown
}

// isAddressAround reports whether a token is a part of a URL, a host name or an e-mail address. It looks only at runs
// of characters without blanks, quotes and angle brackets that contain a token.
func isAddressAround(text string) bool {
	separates := func(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '<' || r == '>' }
	for run := range strings.FieldsFuncSeq(text, separates) {
		if hasMark(run) && addressAround.MatchString(harmlessScheme.ReplaceAllString(run, "$1:x$2")) {
			return true
		}
	}
	return false
}

// isCodeAround reports whether a token is a part of a statement, such as SQL, or of a call, a command or a template.
func isCodeAround(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if hasMark(line) && callAround.MatchString(line) {
			return true
		}
	}
	lower := strings.ToLower(text)
	return slices.ContainsFunc(statementWords, func(word string) bool { return strings.Contains(lower, word) }) &&
		(embeddedAround.MatchString(text) || statementAround.MatchString(mailMarkup.ReplaceAllString(text, "\n")))
}

// mailMarkup matches the marks of quoted lines in an e-mail, and the usual HTML tags of prose. A statement contains
// neither, so they are removed before a text is searched for statements.
var mailMarkup = regexp.MustCompile(`(?im)^[ \t]*>[> \t]*|` +
	`</?(?:a|abbr|article|b|blockquote|body|br|caption|center|code|dd|div|dl|dt|em|figure|font|footer|h[1-6]|head|` +
	`header|hr|html|i|img|li|main|o:p|ol|p|pre|s|section|small|span|strong|sub|sup|table|tbody|td|tfoot|th|thead|` +
	`title|tr|u|ul)` +
	`(?:\s+[\w:-]+\s*=\s*(?:"[^"]*"|'[^']*'|[\w.%#-]+)|\s+(?:nowrap|noshade|hidden))*\s*/?>`)

// statementWords lists words of which each statement that statementAround or embeddedAround matches contains at least
// one. A text without them needs no slow match.
var statementWords = []string{
	"select", "insert", "update", "delete", "merge", "where", "having", "match", "<script", "<iframe",
}

// hasMark reports whether a text contains one of the characters that stand for tokens.
func hasMark(text string) bool { return strings.Contains(text, anyMark[:2]) }

// These characters stand for tokens while a text is judged. The first three are for private use, so ordinary texts do
// not contain them. modelMark stands for a token whose value the model wrote.
const (
	anyMark   = "\uF8FF"
	emailMark = "\uF8FE"
	phoneMark = "\uF8FD"
	modelMark = "x"
)

// markTokens returns the decoded text of a JSON string in which a mark replaces each token. It returns "" if the model
// wrote the values of all tokens. It returns a text that counts as a URL if inner is not a valid string.
func markTokens(inner []byte, tokens []pii.TypedSpan, entries []vault.TokenEntry) string {
	out, from, marks := append(make([]byte, 0, len(inner)+2), '"'), 0, 0
	for i, f := range tokens {
		mark := anyMark
		switch e := entries[i]; {
		case slices.Contains(e.From, modelSource):
			mark = modelMark
		case pii.Type(e.Type) == pii.Email:
			mark = emailMark
		case pii.Type(e.Type) == pii.Phone:
			mark = phoneMark
		}
		if mark != modelMark {
			marks++
		}
		out = append(append(out, inner[from:f.Start]...), mark...)
		from = f.End
	}
	if marks == 0 {
		return ""
	}
	var text string
	if json.Unmarshal(append(append(out, inner[from:]...), '"'), &text) != nil {
		return anyMark + "://" // inner is not a valid string
	}
	return text
}

// isAddressList reports whether a text is a list of tokens, or of names with tokens in angle brackets. An example is
// the list of recipients of an e-mail: "Ann <[EMAIL_1]>, [EMAIL_2]".
func isAddressList(text string) bool {
	separates := func(r rune) bool { return r == ',' || r == ';' || r == '\n' }
	for item := range strings.FieldsFuncSeq(quotedName.ReplaceAllString(text, "q"), separates) {
		if !addressItem.MatchString(item) {
			return false
		}
	}
	return true
}

const (
	mark  = `[\x{F8FD}-\x{F8FF}]`
	run   = `[^\s"<>]*`                   // characters of a URL
	dot   = `[.\x{3002}\x{FF0E}\x{FF61}]` // dots that separate the parts of host names
	quote = "[\"'`]"
)

var addressItem = regexp.MustCompile(
	`^\s*(?:(?:` + mark + `\s*)+|["']?[\pL\pM\pN .'&()` + "\uF8FD-\uF8FF" + `-]*["']?\s*<\s*` + mark + `\s*>\s*)$`,
)

// quotedName matches a name in quotes. Such a name may contain a comma, which does not separate two recipients.
var quotedName = regexp.MustCompile(`"[\pL\pM\pN .,'&()` + "\uF8FD-\uF8FF" + `-]*"`)

// harmlessScheme matches links that consist of a token and a scheme, such as mailto. They can only write to or call the
// value itself.
var harmlessScheme = regexp.MustCompile(
	`(?i)\b(?:(mailto|tel|sms|callto):[\x{F8FD}\x{F8FE}])($|[\s"'<>),;.?!]\s|[\s"'<>),;?]|[.!]$)`,
)

// addressAround matches a text in which a token is a part of a URL, a host name or an e-mail address.
var addressAround = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`[a-z]:[/\\]{2}` + run + mark,                              // after a scheme
	`(?:^|[\s"'(<>=[])[/\\]{2}[\pL\pN_.-]+` + run + mark,       // //host
	`[\pL\pN-]` + dot + `\pL{2,}(?::\d+)?[/?#\\]` + run + mark, // host/path
	`\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?[/?#\\]` + run + mark,     // 192.0.2.1/path
	`\blocalhost(?::\d+)?[/?#\\]` + run + mark,
	`\bwww` + dot + run + mark,
	mark + `[\pL\pN_-]*` + dot + `[\pL\pN-]+` + dot + `\pL[\pL\pN-]+`, // token.host.example
	mark + `[\pL\pN_-]*` + dot + `\pL[\pL\pN-]*(?:/|:\d)`,             // token.example/
	mark + `[\pL\pN_.-]*@[\pL\pN]`,                                    // token@host
	`\b(?:mailto|tel|sms|callto|javascript|vbscript):` + run + mark,
	`\bdata:[\w/+.-]*[;,]` + run + mark,
}, "|"))

// statementAround matches a text in which a token is a part of a statement, such as SQL. The words of a statement also
// occur in ordinary sentences, so the token must stand where a statement has a value.
var statementAround = regexp.MustCompile(`(?is)` + strings.Join([]string{
	`\bselect\b.*\bfrom\b.*\b(?:where|having|on|when|and|or)\b.*` + quotedComparison,
	`\bselect\s+case\s+when\b.*` + comparison,
	`\bselect\s+\w[\w.]*\((?:[^()]*,)?\s*` + mark,
	`\bunion\s+(?:all\s+)?select\s+(?:[\w.*]+\s*,\s*)*` + quote + `%?` + mark,
	`\binsert\s+into\s+\S+\s*(?:\([^()]*\)\s*)?(?:values\s*\(|select\b.*` + quote + `).*` + mark,
	`\bupdate\s+\S+\s+set\s+\S+\s*=.*` + mark,
	`\bdelete\s+from\s+\S+\s+where\b.*` + comparison,
	`\bmerge\s+into\s.*\busing\b.*\bon\b.*` + comparison,
	`\b(?:where|having)\s+[\w."]+\s*(?:[=!<>]=|<>|=)\s*["'%]*` + mark,
	`\b(?:where|having)\s+[\w."]+\s+(?:not\s+)?i?like\s*["']%` + mark,
	`\b(?:where|having)\b.*\b(?:and|or)\s+[\w."]+\s*(?:[=!<>]=|<>|=)\s*["']%?` + mark,
	`\bmatch\s*\(\w*\s*:\s*\w+\s*\{[^{}]*` + mark, // Cypher
}, "|"))

// embeddedAround matches a text in which a token is a part of an HTML script or iframe.
var embeddedAround = regexp.MustCompile(`(?is)<script\b.*` + mark + `|<iframe\b[^>]*` + mark)

// comparison matches a token after a comparison operator, as in a condition of a statement.
const comparison = `(?:` + quotedComparison + `|(?:(?:[=!<>]=|<>|=)\s*|\s[<>]\s+)` + mark + `)`

// quotedComparison matches a token in quotes after a comparison operator. Without quotes, it may be ordinary text: in
// an e-mail, "Name=[NAME_1]" is not a condition.
const quotedComparison = `(?:(?:[=!<>]=|<>|[=<>]|\bi?like)\s*["'` + "`" + `%]+[^"'` + "`" + `:<>\n]*|` +
	`\bin\s*\(\s*` + quote + `[^()]*)` + mark

// callAround matches a line in which a token is a part of a call, a declaration, a template or a command.
var callAround = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\w\((?:[^()]*[,=:{[(]\s*)?[bfru]{0,2}` + quote + "[^\"'`()]*" + mark, // call('token')
	`\$\([^()]*` + mark, `\$\{[^{}]*` + mark, `\{\{[^{}]*` + mark, `<%[^%]*` + mark, `\{%[^%]*` + mark,
	`\son[a-z]+\s*=\s*(?:"[^"]*|'[^']*)` + mark,
	`\b(?:const|let|var)\s+\w+\s*=.*` + mark,
	`(?:^|[;|&]\s*)(?:\$\s+)?(?:(?:curl|wget|nslookup)\s+(?:-|\S+\.\w)|dig\s+[@+]|nc\s+-|ssh\s+-|bash\s+-c|sh\s+-c|` +
		`python3?\s+-c|node\s+-e|powershell\s+-).*` + mark,
}, "|"))

// queryAround matches a text that is probably a query or a call. It is used only if the name of the argument does not
// say that the argument is prose.
var queryAround = regexp.MustCompile(`(?is)` + strings.Join([]string{
	`[?&][\w.-]+=` + run + mark,
	`[\pL\pN_]@` + mark,
	`\w\(\s*` + quote + `?` + mark,
	`(?:[=!<>]=|<>|=~|=)\s*\(?\s*["'` + "`" + `%]*` + mark,
	`\s[<>]\s*["']` + mark,
	`\bselect\s+[\w.*]+(?:\s*,\s*[\w.*]+)*\s+from\s+` + mark,
	`\bi?like\s+["'](?:%+` + mark + `|` + mark + `[^"'\n]*%)`,
	`\bbetween\s+["']` + mark,
}, "|"))

// beginsWithURL matches a text that begins with a URL, with or without a scheme.
var beginsWithURL = regexp.MustCompile(`(?i)^\s*(?:[a-z][a-z0-9+.-]*:)?[/\\]{2}[\pL\pN]`)
