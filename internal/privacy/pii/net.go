package pii

import "bytes"

// findAtColon finds personal data around the colon at i: a MAC address, an IPv6 address, or the credentials in a URL.
func (sc *textScan) findAtColon(i int) int {
	text := sc.text
	if byteAt(text, i+1) == '/' && byteAt(text, i+2) == '/' {
		return sc.findCredentials(i + 3)
	}
	w, ok := sc.wordBefore(1)
	begins := ok && w.end == i && w.end-w.start <= 4 && byteAt(text, w.start-1) != ':' && byteAt(text, w.start-1) != '.'
	switch {
	case begins && isHexText(text[w.start:w.end]):
		if end := sc.findMAC(i); end > 0 {
			return end
		}
		return sc.findIPv6(w.start)
	case byteAt(text, i+1) == ':' && !(ok && w.end == i) && byteAt(text, i-1) != ':':
		return sc.findIPv6(i)
	}
	return 0
}

func isHexText(b []byte) bool {
	for _, c := range b {
		if class[c]&isHex == 0 {
			return false
		}
	}
	return true
}

// findMAC finds a MAC address of six pairs of hex digits whose first separator (: or -) is at i.
func (sc *textScan) findMAC(i int) int {
	text, start := sc.text, i-2
	if start < sc.done || start < 0 || i+15 > len(text) || class[text[start]]&class[text[i-1]]&isHex == 0 ||
		isAlnumByte(byteAt(text, start-1)) ||
		byteAt(text, start-1) == text[i] {
		return 0
	}
	zero, ones := text[start] == '0' && text[start+1] == '0', text[start]|text[start+1] == 'F' || text[start]|text[start+1] == 'f'
	for p := 0; p < 5; p++ {
		j := i + 3*p
		if text[j] != text[i] || class[text[j+1]]&class[text[j+2]]&isHex == 0 {
			return 0
		}
		zero = zero && text[j+1] == '0' && text[j+2] == '0'
		ones = ones && text[j+1]|0x20 == 'f' && text[j+2]|0x20 == 'f'
	}
	end := i + 15
	if isAlnumByte(byteAt(text, end)) || byteAt(text, end) == text[i] && isAlnumByte(byteAt(text, end+1)) || zero || ones || sc.opaque {
		return 0
	}
	return sc.addFinding(start, end, MAC)
}

// macOfThree finds a MAC address written as three groups of four hex digits with dots, such as 0012.3456.789a. The
// address must begin within 12 bytes of i, where a word such as "MAC" ends.
func macOfThree(text []byte, i int) (start, end int) {
	for start = i; start < len(text) && start < i+12; start++ {
		if b := text[start]; class[b]&isHex == 0 || isAlnumByte(text[start-1]) {
			continue
		}
		if end = start + 14; end <= len(text) && !isAlnumByte(byteAt(text, end)) && text[start+4] == '.' && text[start+9] == '.' &&
			isHexText(text[start:start+4]) && isHexText(text[start+5:start+9]) && isHexText(text[start+10:end]) {
			return start, end
		}
	}
	return 0, 0
}

// findIPv6 finds an IPv6 address at start. It ignores loopback and unspecified addresses, which identify nobody.
func (sc *textScan) findIPv6(start int) int {
	text, i := sc.text, start
	groups, gap, digits, letters := 0, -1, 0, 0
	for groups < 8 {
		if byteAt(text, i) == ':' && byteAt(text, i+1) == ':' {
			if gap >= 0 {
				return 0
			}
			gap = groups
			if i += 2; class[byteAt(text, i)]&isHex == 0 {
				break
			}
		} else if groups > 0 {
			if byteAt(text, i) != ':' {
				break
			}
			i++
		}
		end := spanEnd(text, i, isHex)
		if end == i || end-i > 4 {
			return 0
		}
		if byteAt(text, end) == '.' && (gap >= 0 || groups == 6) {
			if v4 := quadEnd(text, i); v4 > 0 {
				i, groups, digits = v4, groups+2, digits+4
				break
			}
		}
		for _, b := range text[i:end] {
			if isDigitByte(b) {
				digits++
			} else {
				letters++
			}
		}
		groups, i = groups+1, end
	}
	after := byteAt(text, i)
	switch {
	case start < sc.done, isAlnumByte(after), (after == ':' || after == '.') && isAlnumByte(byteAt(text, i+1)), after == '_':
		return 0
	case gap < 0 && groups != 8, gap >= 0 && groups > 7, digits == 0:
		return 0
	case gap == 0 && groups < 2, letters == 0 && groups < 4 && i-start < 7:
		return 0
	case sc.opaque:
		return 0
	}
	return sc.addFinding(start, i, IP)
}

// quadEnd returns the end of an IPv4 address (four numbers up to 255, separated by dots) at i, or 0 if none is found.
func quadEnd(text []byte, i int) int {
	for part := range 4 {
		if part > 0 {
			if byteAt(text, i) != '.' {
				return 0
			}
			i++
		}
		n, start := 0, i
		for ; i < len(text) && isDigitByte(text[i]) && i-start < 4; i++ {
			n = n*10 + int(text[i]-'0')
		}
		if i == start || n > 255 || i-start > 1 && text[start] == '0' {
			return 0
		}
	}
	return i
}

// findIPv4 finds an IPv4 address at start. It ignores what may be a version number, and addresses that are the same
// on every machine, such as 127.0.0.1.
func (sc *textScan) findIPv4(start int) int {
	text := sc.text
	end := quadEnd(text, start)
	b := byteAt(text, start-1)
	switch {
	case end == 0 || isAlnumByte(byteAt(text, end)) || byteAt(text, end) == '_':
		return 0
	case byteAt(text, end) == '.' && isAlnumByte(byteAt(text, end+1)), byteAt(text, end) == '-' && isAlnumByte(byteAt(text, end+1)):
		return 0
	case b == '.' || b == '_' || isAlnumByte(b) || b == '-' && isAlnumByte(byteAt(text, start-2)) ||
		b == '/' && isAlnumByte(byteAt(text, start-2)) ||
		b == '^' ||
		b == '~':
		return 0
	case sc.opaque || sc.contextBefore(start)&sc.voc.version != 0:
		return 0
	}
	if sectionLike(text[start:end]) && sc.contextBefore(start)&sc.voc.address == 0 {
		return end
	}
	switch ip := string(text[start:end]); {
	case ip == "0.0.0.0", ip[:4] == "127.", ip[:4] == "255.":
		return end
	}
	return sc.addFinding(start, end, IP)
}

// sectionLike reports whether an IPv4 address could be a section number such as 1.2.3.4. That is the case if all its
// numbers are small, unless it is a private or well-known address.
func sectionLike(ip []byte) bool {
	n := 0
	for _, b := range ip {
		if n = n*10 + int(b-'0'); b == '.' {
			n = 0
		}
		if n > 25 || b == '0' && n == 0 {
			return false
		}
	}
	return !bytes.HasPrefix(ip, []byte("10.")) && !isOneOf(string(ip), "8.8.8.8", "8.8.4.4", "1.1.1.1", "9.9.9.9")
}

// findCredentials finds user:password@ in a URL. i is the offset after ://.
func (sc *textScan) findCredentials(i int) int {
	text, colon := sc.text, 0
	for j := i; j < len(text) && j-i < 256; j++ {
		switch b := text[j]; {
		case b == ':' && colon == 0:
			colon = j
		case b == '@':
			if colon == 0 || j-colon < 3 || isPlaceholder(text[colon+1:j]) {
				return 0
			}
			return sc.addFinding(i, j, Secret)
		case class[b]&isSpace != 0 || b == '/' || b == '"' || b == '<' || b == '>' || b == '\'' || b == '\\' || b == '?' || b == '#' || b == ',':
			return 0
		}
	}
	return 0
}

// isPlaceholder reports whether a secret is only a placeholder, such as ${TOKEN} or "changeme".
func isPlaceholder(v []byte) bool {
	if bytes.ContainsAny(v, "${}<>*[]%…") {
		return true
	}
	lower := bytes.ToLower(v)
	for _, w := range []string{
		"pass", "password", "passwd", "secret", "token", "xxx", "example", "changeme", "your", "null", "none", "nil",
		"true", "false", "undefined", "redacted", "required", "string", "hidden", "placeholder",
	} {
		if string(lower) == w ||
			(w == "xxx" || w == "example" || w == "your" || w == "redacted" || w == "placeholder") && bytes.Contains(lower, []byte(w)) {
			return true
		}
	}
	return isUniform(v)
}
