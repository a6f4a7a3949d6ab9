package sanitize

import "strings"

const (
	maxLabel   = 512  // bytes of a link's text
	maxAddress = 2048 // bytes of a link's address
)

// findLinks finds Markdown and HTML links and images. CleanText replaces a link by its text and by its target without
// the parts that could carry data out, and an image by its text.
func findLinks(text string) (found []TextFinding) {
	visible, places := visibleText(text)
	for i := 0; i < len(visible); i++ {
		var n int
		var instead string
		switch rest := visible[i:]; {
		case rest[0] == '!' && strings.HasPrefix(rest, "!["):
			instead, n = inlineLink(rest[1:], true)
			n = includePrefix(n)
		case rest[0] == '[':
			if instead, n = inlineLink(rest, false); n == 0 && isAtLineStart(visible[:i]) {
				instead, n = readLinkDefinition(rest)
			}
		case rest[0] == '<':
			instead, n = htmlLink(rest)
		}
		if n > 0 {
			f := newFinding(linkRule, places(i), places(i+n))
			f.instead = instead
			found = append(found, f)
			i += n - 1
		}
	}
	return found
}

func includePrefix(n int) int {
	if n > 0 {
		n++
	}
	return n
}

// isAtLineStart reports whether the last line of a text is empty except for blanks and ">", so that what follows
// the text starts a line.
func isAtLineStart(text string) bool {
	return strings.TrimRight(text[strings.LastIndexByte(text, '\n')+1:], " \t>") == ""
}

// inlineLink parses a link [label](address "title") or [label][reference] at the start of text. It returns the
// text that replaces the link, and the link's length in bytes or 0.
func inlineLink(text string, image bool) (instead string, n int) {
	end := findClosing(text, '[', ']', maxLabel)
	if end < 0 || end+1 >= len(text) {
		return "", 0
	}
	label := plainLabel(text[1:end])
	switch text[end+1] {
	case '(':
		size := findClosing(text[end+1:], '(', ')', maxAddress)
		if size < 0 {
			return "", 0
		}
		inside := text[end+2 : end+1+size]
		if !strings.ContainsAny(inside, "/:.#?=") {
			return "", 0 // of code, not of Markdown
		}
		if n = end + size + 2; image {
			return label, n
		}
		return strings.TrimSpace(label + " " + linkAddress(inside)), n
	case '[':
		size := findClosing(text[end+1:], '[', ']', maxLabel)
		if !image || size < 0 {
			return "", 0
		}
		return label, end + size + 2
	}
	return "", 0
}

// plainLabel returns the text of a link from its label, which may also contain an image.
func plainLabel(label string) string {
	if i := strings.Index(label, "["); i >= 0 {
		if inner, n := inlineLink(label[i:], true); n > 0 {
			return strings.TrimRight(label[:i], "!") + inner + label[i+n:]
		}
	}
	return label
}

// findClosing returns the index of the bracket that closes the bracket at the start of text, or -1.
func findClosing(text string, opens, closes byte, most int) int {
	depth := 0
	for i := 0; i < len(text) && i < most; i++ {
		switch text[i] {
		case '\\':
			i++
		case opens:
			depth++
		case closes:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// linkAddress returns the target of a link without query, fragment and title. For an unusual address it returns Mark.
func linkAddress(inside string) string {
	fields := strings.Fields(inside)
	if len(fields) == 0 {
		return ""
	}
	to := strings.Trim(fields[0], "<>")
	to, _, _ = strings.Cut(to, "?")
	to, fragment, _ := strings.Cut(to, "#")
	if fragment != "" && !strings.ContainsAny(fragment, "=&%{") {
		to += "#" + fragment
	}
	scheme, _, named := strings.Cut(to, ":")
	if named && hasPrefixFold("data:", scheme+":") || hasPrefixFold("javascript:", scheme+":") || hasPrefixFold("vbscript:", scheme+":") ||
		strings.ContainsAny(to, "{}$`[]()<>@%\\") {
		return Mark
	}
	if to == "" {
		return ""
	}
	return "(" + to + ")"
}

// readLinkDefinition parses a Markdown link definition, [reference]: address, at the start of text. It returns the
// text that replaces it, and its length in bytes or 0.
func readLinkDefinition(text string) (instead string, n int) {
	end := findClosing(text, '[', ']', maxLabel)
	if end < 0 || !strings.HasPrefix(text[end+1:], ":") {
		return "", 0
	}
	line := text[:lineEnd(text)]
	if end+2 > len(line) {
		return "", 0
	}
	to := strings.TrimSpace(line[end+2:])
	if !strings.Contains(to, "://") && !strings.HasPrefix(to, "//") && !strings.HasPrefix(to, "data:") {
		return "", 0
	}
	return text[1:end] + ": " + linkAddress(to), len(line)
}

// loadingTags lists HTML tags whose content a client may load without asking.
var loadingTags = []string{
	"img", "iframe", "script", "link", "object", "embed", "video", "audio", "source", "svg", "form", "input", "meta",
	"base",
}

// htmlLink parses an HTML tag with a link, or <https://…>, at the start of text. It returns the text that replaces
// it, and its length in bytes or 0.
func htmlLink(text string) (instead string, n int) {
	end := strings.IndexByte(text[:min(len(text), maxAddress)], '>')
	if end < 2 {
		return "", 0
	}
	tag := text[1:end]
	if hasPrefixFold(tag, "http://") || hasPrefixFold(tag, "https://") {
		if !strings.ContainsAny(tag, "?#{}") || strings.ContainsAny(tag, " \n") {
			return "", 0
		}
		return strings.Trim(linkAddress(tag), "()"), end + 1
	}
	name, attributes, _ := strings.Cut(strings.ReplaceAll(tag, "\n", " "), " ")
	leads := strings.Contains(attributes, "//") && strings.Contains(attributes, "=") || strings.Contains(strings.ToLower(attributes), "data:")
	if !leads {
		return "", 0
	}
	for _, l := range loadingTags {
		if strings.EqualFold(name, l) {
			return Mark, end + 1
		}
	}
	if strings.EqualFold(name, "a") && strings.ContainsAny(attributes, "?{") {
		return Mark, end + 1
	}
	return "", 0
}
