package sanitize

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// speakerRoles lists roles in conversations, such as system. A line that begins with a role and a colon pretends to
// quote a speaker.
var speakerRoles = []string{"system", "assistant", "human"}

// endsWithSpeaker reports whether a text ends with the name of a speaker.
func endsWithSpeaker(text string) bool {
	text = strings.TrimRight(text, " *_")
	for _, s := range speakerRoles {
		if len(text) >= len(s) && strings.EqualFold(text[len(text)-len(s):], s) {
			return true
		}
	}
	return false
}

// Names of HTML-like tags that pretend to be instructions. The tags in suspiciousTags are suspicious everywhere. The
// tags in posingTags are suspicious only as a block: with a closing tag, or alone on a line. The names in both lists
// are also suspicious as one word in names of arguments.
var (
	suspiciousTags = []string{
		"important", "system-reminder", "system_reminder", "system-prompt", "system_prompt", "systemprompt", "hidden",
		"secret", "override", "jailbreak", "im_start", "critical_instruction", "ai_instructions", "agent_instructions",
	}
	posingTags = []string{"system", "sys", "admin", "assistant", "human", "internal", "prompt", "developer", "inst", "critical"}
)

// opensSign reports whether a < or [ may begin a sign, such as a tag.
func opensSign(text string) bool {
	if len(text) < 2 {
		return false
	}
	switch text[0] {
	case '[':
		return hasPrefixFold(text, "[inst") || hasPrefixFold(text, "[/inst") || strings.HasPrefix(text, "[//]") || badgeLength(text) > 0
	case '(', '{':
		return badgeLength(text) > 0
	}
	if text[0] == '&' {
		return escapedTag(text) > 0
	}
	return text[1] == '|' || text[1] == '!' || text[1] == '<' || tagName(text) != ""
}

// escapedTag returns the length of the block at the start of text if the block begins with an HTML-escaped tag, such
// as &lt;important&gt;.
func escapedTag(text string) int {
	if !hasPrefixFold(text, "&lt;") {
		return 0
	}
	end := strings.Index(text[:min(len(text), 48)], "&gt;")
	if end < 0 {
		return 0
	}
	name := tagName("<" + text[4:end] + ">")
	if !slices.Contains(suspiciousTags, name) {
		return 0
	}
	for i := end; ; i++ {
		next := strings.Index(text[i:], "&lt;/")
		if next < 0 {
			return len(text)
		}
		if i += next; hasPrefixFold(text[i+5:], name+"&gt;") {
			return i + 5 + len(name) + 4
		}
	}
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// tagName returns the lower-case name of the suspicious tag at the start of text, or "".
func tagName(text string) string {
	rest := strings.TrimLeft(text[1:min(len(text), 40)], " ")
	end := strings.IndexFunc(rest, func(r rune) bool {
		return !(unicode.IsLetter(r) || r == '_' || r == '-')
	})
	if end <= 0 || rest[end] != '>' && rest[end] != ' ' && rest[end] != '/' && rest[end] != '\n' {
		return ""
	}
	name := strings.ToLower(foldWord(rest[:end]))
	for _, list := range [][]string{suspiciousTags, posingTags} {
		for _, tag := range list {
			if name == tag {
				return name
			}
		}
	}
	return ""
}

// findBlocks finds suspicious tags, marks of roles, comments and encoded text.
func findBlocks(text string) (found []TextFinding) {
	visible, places := visibleText(text)
	add := func(r TextRule, start, end int) {
		found = append(found, newFinding(r, places(start), places(end)))
	}
	lineStart := true
	for i := 0; i < len(visible); i++ {
		c := visible[i]
		rest := visible[i:]
		var r TextRule
		n := 0
		switch {
		case c == '&':
			r, n = hiddenTag, escapedTag(rest)
		case c == '<' || c == '[' || c == '(' || c == '{':
			r, n = bracketSign(visible, i, lineStart)
		case strings.HasPrefix(rest, "【"):
			r, n = roleMark, badgeLength(rest)
		case lineStart && (isLetter(c) || c == '#'):
			r, n = speakerSign(rest)
		case isLetter(c) && sentenceStarts(visible[:i]):
			if r, n = speakerSign(rest); n > 0 && !addressesReader(rest[:n]) {
				n = 0
			}
		}
		if n > 0 {
			add(r, i, i+n)
			i += n - 1
			lineStart = false
			continue
		}
		lineStart = c == '\n' || lineStart && (c == ' ' || c == '\t' || c == '*' || c == '>')
	}
	for _, span := range encodedRuns(visible) {
		add(encodedRule, span[0], span[1])
	}
	return found
}

// bracketSign returns the rule and the length of the sign that begins with the bracket at i.
func bracketSign(text string, i int, lineStart bool) (TextRule, int) {
	rest := text[i:]
	switch {
	case !opensSign(rest):
	case rest[0] == '[' && strings.HasPrefix(rest, "[//]"):
		return commentRule, lineEnd(rest)
	case badgeLength(rest) > 0:
		return roleMark, badgeLength(rest)
	case rest[0] == '[':
		if end := strings.IndexByte(rest, ']'); end > 0 && end < 10 {
			return roleMark, end + 1
		}
	case strings.HasPrefix(rest, "<!--"):
		return hiddenComment(rest)
	case strings.HasPrefix(rest, "<|"):
		if end := strings.Index(rest, "|>"); end > 2 && end < 40 && !strings.ContainsAny(rest[2:end], " \n") {
			return roleMark, end + 2
		}
	case hasPrefixFold(rest, "<<sys>>"), hasPrefixFold(rest, "<</sys>>"):
		return roleMark, strings.Index(rest, ">>") + 2
	default:
		return hiddenTag, blockLength(rest, tagName(rest), lineStart)
	}
	return TextRule{}, 0
}

// Words in brackets that pretend to name a speaker. The weak ones are also ordinary labels and count only before
// words that address the model.
var (
	speakerBadges = []string{"system", "assistant", "instruction", "override", "hidden", "secret", "jailbreak", "note to"}
	weakBadges    = []string{
		"admin", "developer", "important", "critical", "ai", "agent", "llm", "model", "urgent", "security", "attention",
		"internal", "prompt", "anthropic", "openai",
	}
)

// maskedSecret is the beginning of a mark that the engine itself writes in place of a secret: "[SECRET github
// TOKEN]". Unlike other words in brackets, such as "[SYSTEM]", this mark is suspicious only if the text after it
// addresses the model.
const maskedSecret = "SECRET "

// badgeLength returns the length of a line that begins with a badge (a speaker's name in brackets) that pretends to
// name the speaker, such as "[SYSTEM] You must …". It returns 0 if text does not begin with such a line.
func badgeLength(text string) int {
	opening, closing := text[:1], "]"
	switch {
	case strings.HasPrefix(text, "【"):
		opening, closing = "【", "】"
	case text[0] == '(':
		closing = ")"
	case text[0] == '{':
		closing = "}"
	case text[0] != '[':
		return 0
	}
	head := text[len(opening):min(len(text), 48)]
	end := strings.Index(head, closing)
	if end < 0 {
		return 0
	}
	words := strings.ToLower(strings.Trim(head[:end], " *_{[(!:"))
	line := lineEnd(text)
	after := text[min(line, len(opening)+end+len(closing)):line]
	starts := func(list []string) bool {
		return slices.ContainsFunc(list, func(b string) bool {
			return strings.HasPrefix(words, b) && (len(words) == len(b) || !isLetter(words[len(b)]) || words[len(b):] == "s")
		})
	}
	switch {
	case text[0] == '[' && starts(speakerBadges) && !strings.HasPrefix(head, maskedSecret) && len(strings.Fields(after)) > 1:
		return line
	case (starts(speakerBadges) || starts(weakBadges)) && addressesReader(after):
		return line
	}
	return 0
}

// addressesReader reports whether a line addresses its reader, for example with "you must".
func addressesReader(line string) bool {
	words := strings.FieldsFunc(strings.ToLower(line), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	return slices.ContainsFunc(words[:min(len(words), 60)], func(w string) bool {
		return slices.Contains([]string{"you", "your", "must", "always", "never", "ignore", "disregard", "forget", "obey", "now"}, w)
	})
}

// sentenceStarts reports whether a text ends like a sentence, so that a new sentence may start after it.
func sentenceStarts(text string) bool {
	text = strings.TrimRight(text, " *_>\"'")
	return text != "" && strings.IndexByte(".!?;)]}|", text[len(text)-1]) >= 0
}

// hiddenComment matches an HTML comment that contains a sentence.
func hiddenComment(rest string) (TextRule, int) {
	end := strings.Index(rest, "-->")
	if end < 0 {
		end = len(rest)
	}
	if len(strings.Fields(rest[4:max(4, end)])) < 4 {
		return TextRule{}, 0
	}
	return commentRule, min(len(rest), end+3)
}

// blockLength returns the length of the block that the tag at the start of text opens, or 0. A block without a
// closing tag extends to the end of the text.
func blockLength(rest, name string, lineStart bool) int {
	if name == "" {
		return 0
	}
	end := strings.IndexByte(rest, '>')
	if end < 0 {
		return 0
	}
	closing := closingTag(rest[end:], name)
	alone := lineStart && (end+1 == len(rest) || strings.HasPrefix(strings.TrimLeft(rest[end+1:], " \t\r"), "\n"))
	switch {
	case closing > 0:
		return end + closing
	case slices.Contains(suspiciousTags, name) || alone:
		return len(rest)
	}
	return 0
}

// closingTag returns the end of </name> in text, or 0 if it is missing.
func closingTag(text, name string) int {
	for i := 0; ; i++ {
		next := strings.Index(text[i:], "</")
		if next < 0 {
			return 0
		}
		i += next
		inside := strings.TrimLeft(text[i+2:], " ")
		if len(inside) >= len(name) && strings.EqualFold(inside[:len(name)], name) {
			if end := strings.IndexByte(text[i:], '>'); end > 0 {
				return i + end + 1
			}
		}
	}
}

// speakerSign returns the rule for a line that pretends to quote a speaker or to be the heading of a prompt.
func speakerSign(rest string) (TextRule, int) {
	line := strings.TrimLeft(rest, "# ")
	heading := len(line) < len(rest)
	for _, s := range speakerRoles {
		if hasPrefixFold(line, s) && strings.HasPrefix(strings.TrimLeft(line[len(s):], " *_"), ":") {
			return roleMark, lineEnd(rest)
		}
	}
	if heading && strings.HasPrefix(rest, "###") {
		for _, s := range []string{"instruction:", "response:", "system prompt", "system message", "system instruction"} {
			if hasPrefixFold(line, s) {
				return roleMark, lineEnd(rest)
			}
		}
		if hasPrefixFold(line, "system ###") {
			return roleMark, lineEnd(rest)
		}
	}
	return TextRule{}, 0
}

func lineEnd(text string) int {
	if end := strings.IndexByte(text, '\n'); end >= 0 {
		return end
	}
	return len(text)
}

// maxEncoded bounds the length of a run of letters and digits that is decoded, in bytes.
const maxEncoded = 200

// encodedRuns matches runs of characters that look like Base64.
func encodedRuns(text string) (spans [][2]int) {
	start, kinds := 0, 0
	for i := 0; i <= len(text); i++ {
		kind := 0
		if i < len(text) {
			kind = encodedKind(text[i])
		}
		if kind != 0 {
			kinds |= kind
			continue
		}
		if i-start > maxEncoded && kinds&7 == 7 {
			spans = append(spans, [2]int{start, i})
		}
		start, kinds = i+1, 0
	}
	return spans
}

func encodedKind(c byte) int { return int(encodedKinds[c]) }

// encodedKinds contains the result of kindOf for each byte, computed in advance because it is needed for every byte
// of a text.
var encodedKinds = func() (all [256]uint8) {
	for i := range all {
		all[i] = kindOf(byte(i))
	}
	return all
}()

func kindOf(c byte) uint8 {
	switch {
	case 'a' <= c && c <= 'z':
		return 1
	case 'A' <= c && c <= 'Z':
		return 2
	case '0' <= c && c <= '9':
		return 4
	case c == '+' || c == '/' || c == '=':
		return 8
	}
	return 0
}

// visibleText returns a text without invisible characters, and a function that converts offsets in it to offsets in
// the original text.
func visibleText(text string) (string, func(int) int) {
	if strings.IndexFunc(text, isInvisible) < 0 {
		return text, func(i int) int { return i }
	}
	var b strings.Builder
	places := make([]int, 0, len(text)+1)
	for i, r := range text {
		if isInvisible(r) {
			continue
		}
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(text[i:])
		}
		for j := range size {
			places = append(places, i+j)
		}
		b.WriteString(text[i : i+size])
	}
	places = append(places, len(text))
	return b.String(), func(i int) int { return places[i] }
}
