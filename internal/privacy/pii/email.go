package pii

import "bytes"

// findEmail finds an e-mail address around the @ at i and returns the offset at which the scan continues, or 0. The
// local part may contain non-ASCII letters. In scripts without spaces, such as Chinese, the local part begins at its
// first ASCII character.
func (sc *textScan) findEmail(i int) int {
	text := sc.text
	start := sc.emailStart(i)
	if start == i {
		return 0
	}
	end := domainEnd(text, i+1)
	if end == 0 || technicalAddress(text, start, i, end) {
		return 0
	}
	if sc.s.off[Email] {
		return 0
	}
	sc.withdraw(start)
	sc.displayName(start)
	return sc.addFinding(start, end, Email)
}

// emailStart returns the offset at which the e-mail address with the @ at i begins, or i if there is no address.
// Findings inside the local part do not matter, because the address replaces them. The address begins only after a
// finding that is the secret in user:secret@host, that began before the local part, or that is text in the form of a
// token.
func (sc *textScan) emailStart(i int) int {
	start := localPart(sc.text, i, 0)
	for n := len(sc.out); n > sc.first && sc.out[n-1].End > start; n-- {
		f := sc.out[n-1]
		if isSecret := f.Type == Secret && f.Start == start && f.End == i; isSecret || f.Type == "" || f.Start < start {
			return localPart(sc.text, i, f.End)
		}
	}
	return start
}

// withdraw removes the findings that begin at the offset start or later, so that an e-mail address can take their
// place.
func (sc *textScan) withdraw(start int) {
	n := len(sc.out)
	for n > sc.first && sc.out[n-1].Start >= start {
		n--
	}
	if n == len(sc.out) {
		return
	}
	sc.out, sc.done = sc.out[:n], 0
	if n > sc.first {
		sc.done = sc.out[n-1].End
	}
}

// localPart returns the offset at which the local part of the address with the @ at i begins. It is at least low, and
// at most 64 bytes before i.
func localPart(text []byte, i, low int) int {
	low = max(low, i-64)
	start := i
	for start > low && class[text[start-1]]&isLocal != 0 {
		b := text[start-1]
		if b >= 0x80 && wideRune(text, start-1) {
			if start < i && text[start] < 0x80 {
				break
			}
		}
		start--
	}
	for start < i &&
		(class[text[start]]&isAlnum == 0 && text[start] != '_' && text[start] != '+' || text[start] >= 0x80 && text[start] < 0xC0) {
		start++
	}
	if b := byteAt(text, i-1); b == '.' {
		return i
	}
	return start
}

// wideRune reports whether the byte at i belongs to a character of a script without spaces between words.
func wideRune(text []byte, i int) bool {
	for n := 0; n < 3 && i >= 0 && text[i] < 0xC0; n++ {
		i--
	}
	return i >= 0 && text[i] >= 0xE3
}

// domainEnd returns the end of a dotted domain name that begins at i, or 0.
func domainEnd(text []byte, i int) int {
	start, label, dots, end := i, i, 0, 0
	for ; i < len(text) && i-start < 254; i++ {
		b := text[i]
		switch {
		case b == 0xE3 && byteAt(text, i+1) == 0x80: // punctuation of Chinese and Japanese
		case b == '.':
			if i == label || text[i-1] == '-' {
				return end
			}
			if dots > 0 && topLevel(text[label:i]) {
				end = i
			}
			dots, label = dots+1, i+1
			continue
		case class[b]&isAlnum != 0, b == '-' && i > label:
			continue
		}
		break
	}
	if dots == 0 {
		return 0
	}
	tail := i
	for tail > label && !(text[label] >= 0x80) && text[tail-1] >= 0x80 { // "com" with text of another script behind it
		tail--
	}
	for tail > label && text[tail-1] == '-' {
		tail--
	}
	if i < len(text) && text[i] == '_' {
		return end
	}
	if topLevel(text[label:tail]) {
		return tail
	}
	return end
}

// topLevel reports whether label may be a top-level domain.
func topLevel(label []byte) bool {
	if bytes.HasPrefix(label, []byte("xn--")) {
		return len(label) > 6
	}
	if len(label) < 2 || len(label) > 24 {
		return false
	}
	for _, b := range label {
		if class[b]&isLetter == 0 {
			return false
		}
	}
	switch string(label) {
	case "png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "json", "ts", "tsx", "html", "htm", "xml", "yml", "yaml", "txt", "tgz", "gz",
		"service", "socket", "timer", "target", "mount", "slice", "scope", "device", "swap", "local", "localdomain", "internal", "svc":
		return label[0] == 'l' || label[0] == 'i' // names of networks
	}
	return true
}

// technicalAddress reports whether text looks like an e-mail address but belongs to no person, such as git@host: in
// the address of a repository.
func technicalAddress(text []byte, start, at_, end int) bool {
	if byteAt(text, start-1) == ':' || byteAt(text, start-1) == '/' || byteAt(text, start-1) == '%' { // the user of a URL
		i := start
		for i > 0 && i > start-64 && class[text[i-1]]&isSpace == 0 && text[i-1] != '/' {
			i--
		}
		if bytes.HasSuffix(text[:i], []byte("://")) {
			return true
		}
	}
	local := string(text[start:at_])
	next := byteAt(text, end)
	return (local == "git" || local == "hg" || local == "svn" || local == "org") && (next == ':' || next == '/')
}
