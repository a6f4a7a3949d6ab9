package pii

import (
	"bytes"
	_ "embed"
	"math"
	"strconv"
	"strings"
	"sync"
)

//go:embed secrets.txt
var secretList string

// secretRule is the pattern of one kind of secret, such as an API key.
type secretRule struct {
	prefix  string
	entropy float64 // least, in bits of a byte
	parts   []secretPart
}

// secretPart represents a part of a secret's pattern: either a literal, or a run of bytes of one class. The fields
// least and most are the minimum and maximum length of the run.
type secretPart struct {
	literal     string
	class       byte
	least, most int
}

// secretRules maps the first three bytes of a text to the rules that may match there.
type secretRules struct {
	first [1 << 8]uint64
	rules map[[3]byte][]secretRule
}

var secretTable = sync.OnceValue(func() *secretRules {
	t := &secretRules{rules: map[[3]byte][]secretRule{}}
	for line := range strings.Lines(secretList) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] == "#" {
			continue
		}
		entropy, _ := strconv.ParseFloat(f[1], 64)
		r := secretRule{entropy: entropy, parts: secretParts(f[2])}
		r.prefix = r.parts[0].literal
		key := [3]byte([]byte(r.prefix + "__")[:3])
		if len(r.prefix) < 3 { // the third byte is of a class: try all
			for b := range 128 {
				if isAlnumByte(byte(b)) {
					key[2] = byte(b)
					t.putRule(key, r)
				}
			}
			continue
		}
		t.putRule(key, r)
	}
	return t
})

func (t *secretRules) putRule(key [3]byte, r secretRule) {
	h := keyHash(key[0], key[1], key[2])
	t.first[h>>6] |= 1 << (h & 63)
	t.rules[key] = append(t.rules[key], r)
}

func keyHash(a, b, c byte) uint32 {
	return (uint32(a) | uint32(b)<<8 | uint32(c)<<16) * 0x9E3779B1 >> 18
}

func secretParts(pattern string) (parts []secretPart) {
	for pattern != "" {
		lit, rest, more := strings.Cut(pattern, "%")
		if lit != "" {
			parts = append(parts, secretPart{literal: lit})
		}
		if !more {
			break
		}
		p := secretPart{class: rest[0], least: 1, most: 1}
		if rest = rest[1:]; strings.HasPrefix(rest, "{") {
			count, after, _ := strings.Cut(rest[1:], "}")
			least, most, two := strings.Cut(count, ",")
			p.least, _ = strconv.Atoi(least)
			if p.most = p.least; two {
				p.most, _ = strconv.Atoi(most)
			}
			rest = after
		}
		parts, pattern = append(parts, p), rest
	}
	return parts
}

// shortestSecret is the minimum length of a secret, in bytes.
const shortestSecret = 16

// mayBegin reports whether a secret may begin at i. It can return true although no rule matches there.
func (t *secretRules) mayBegin(text []byte, i int) bool {
	if i+shortestSecret > len(text) {
		return false
	}
	h := keyHash(text[i], text[i+1], text[i+2])
	return t.first[h>>6]>>(h&63)&1 != 0
}

func (c secretPart) hasByte(b byte) bool {
	s := class[b]
	switch c.class {
	case 'n':
		return s&(isDigit|isUpper|isLower) != 0
	case 'w':
		return s&(isDigit|isUpper|isLower) != 0 || b == '_' || b == '-'
	case 'W':
		return s&(isDigit|isUpper|isLower) != 0 || b == '_' || b == '-' || b == '.' || b == '='
	case 'l':
		return s&(isDigit|isLower) != 0
	case 'U':
		return s&(isDigit|isUpper) != 0
	case 'h':
		return s&isHex != 0 && s&isUpper == 0
	case 'H':
		return s&isHex != 0
	case 'd':
		return s&isDigit != 0
	case 'a':
		return s&(isUpper|isLower) != 0
	case 'b':
		return s&(isDigit|isUpper|isLower) != 0 || b == '+' || b == '/'
	case 'p':
		return b == '='
	}
	return false
}

// matchEnd returns the end of the secret at i, or 0 if the rule does not match there.
func (r *secretRule) matchEnd(text []byte, i int) int {
	start := i
	for _, p := range r.parts {
		if p.literal != "" {
			if i+len(p.literal) > len(text) || string(text[i:i+len(p.literal)]) != p.literal {
				return 0
			}
			i += len(p.literal)
			continue
		}
		n := 0
		for n < p.most && i < len(text) && p.hasByte(text[i]) {
			i, n = i+1, n+1
		}
		if n < p.least {
			return 0
		}
	}
	if isAlnumByte(byteAt(text, i)) || byteAt(text, i) == '_' || shannonEntropy(text[start+len(r.prefix):i]) < r.entropy {
		return 0
	}
	return i
}

// shannonEntropy returns the Shannon entropy of b in bits per byte.
func shannonEntropy(b []byte) (bits float64) {
	var count [256]int
	for _, c := range b {
		count[c]++
	}
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(b))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// findSecret finds a secret at start that has the format of a known kind, such as an API key.
func (sc *textScan) findSecret(start int) int {
	if b := byteAt(sc.text, start-1); isAlnumByte(b) || sc.s.off[Secret] {
		return 0
	}
	t := sc.s.tables.secrets
	for i, rules := 0, t.rules[[3]byte(sc.text[start:start+3])]; i < len(rules); i++ {
		if end := rules[i].matchEnd(sc.text, start); end > 0 {
			return sc.addFinding(start, end, Secret)
		}
	}
	return 0
}

// findPEM finds a PEM private key at i.
func (sc *textScan) findPEM(i int) int {
	const begin, key, finish = "-----BEGIN ", "PRIVATE KEY", "-----END "
	if sc.noPEM || !bytes.HasPrefix(sc.text[i:], []byte(begin)) {
		return 0
	}
	head := sc.text[i+len(begin) : min(len(sc.text), i+len(begin)+60)]
	if line := bytes.IndexAny(head, "\n\r"); line >= 0 {
		head = head[:line]
	}
	if !bytes.Contains(head, []byte(key)) {
		return 0
	}
	end := bytes.Index(sc.text[i:], []byte(finish))
	if end < 0 {
		sc.noPEM = true
		return sc.addFinding(i, len(sc.text), Secret)
	}
	end += i + len(finish)
	if tail := bytes.Index(sc.text[end:min(len(sc.text), end+60)], []byte("-----")); tail >= 0 {
		end += tail + 5
	}
	return sc.addFinding(i, end, Secret)
}

// endsValue marks the bytes that cannot occur in a secret, so that they end it.
var endsValue = func() (ends [256]bool) {
	for _, b := range []byte(" \t\r\n\"'`,;<>()[]{}|") {
		ends[b] = true
	}
	return ends
}()

// findHumped finds a secret that follows a name with humps (in camel case), such as stripeApiKey or dbPassword.
func (sc *textScan) findHumped(w textWord) int {
	name := sc.text[w.start:w.end]
	if len(name) > 60 || len(name) < 4 {
		return 0
	}
	switch string(name[len(name)-2:]) { // the ends of the words of ending
	case "en", "et", "rd", "wd", "se", "de", "al", "ls", "ey":
	default:
		return 0
	}
	to := len(name)
	for hump := 0; hump < 2; hump++ {
		from := to - 1
		for from > 0 && class[name[from]]&isUpper == 0 {
			from--
		}
		for from > 0 && to-from < 2 && class[name[from-1]]&isUpper != 0 { // ID
			from--
		}
		if from == 0 || len(name)-from > 12 {
			return 0
		}
		if words := sc.voc.kindOfEnding(name[from:]); words != 0 && !isHarmlessToken(name[:from]) {
			return sc.findAssigned(w.end, words)
		}
		to = from
	}
	return 0
}

// kindOfEnding returns the bit for passwords or for secrets if the last word of a name stands for one, as in
// dbPassword or apiToken. Otherwise it returns 0.
func (v *contextWords) kindOfEnding(name []byte) uint64 {
	var room [16]byte
	switch string(appendFolded(room[:0], name)) {
	case "password", "passwd", "passphrase", "passcode", "pwd":
		return v.password
	case "token", "secret", "credential", "credentials", "apikey", "apitoken", "accesskey", "accesstoken",
		"authtoken", "secretkey", "privatekey", "signingkey", "accountkey":
		return v.secret
	}
	return 0
}

// isHarmlessToken reports whether a name belongs to a token that is no secret, such as a page token.
func isHarmlessToken(name []byte) bool {
	for _, w := range []string{"page", "next", "sync", "continuation", "csrf", "xsrf", "reset", "public", "cancel"} {
		if n := len(name) - len(w); n >= 0 && equalFold(name[n:], w) {
			return true
		}
	}
	return false
}

// findAssigned finds a secret that follows a word which announces it, as in password: x, api_key=x or Bearer x. The
// word ends at i.
func (sc *textScan) findAssigned(i int, words uint64) int {
	text := sc.text
	if p, ok := sc.wordBefore(2); ok && p.end < i && isHarmlessToken(text[p.start:p.end]) {
		return 0
	}
	sign, quoted := i, false
	if q := byteAt(text, i); q == '"' || q == '\'' || q == '`' || q == ')' {
		sign, quoted = sign+1, q != ')'
	}
	sign = blanksEnd(text, sign, 3)
	if bytes.HasPrefix(text[sign:], []byte("string =")) { // var token string = "x"
		sign += len("string ")
	}
	if b := byteAt(text, sign); (b == '?' || b == '.' || b == '+') && byteAt(text, sign+1) == '=' {
		sign++
	}
	j := sign
	for j < len(text) && j < sign+4 && (text[j] == ':' || text[j] == '=' || text[j] == '>') {
		j++
	}
	switch {
	case j == sign && quoted && byteAt(text, j) == ',' && words&sc.voc.secret != 0: // setenv("TOKEN", "x")
		if k := blanksEnd(text, j+1, 3); byteAt(text, k) == '"' || byteAt(text, k) == '\'' {
			j = k
		}
	case j == i+1 && text[i] == '>': // <token>
		j = min(spanEnd(text, j, isSpace), j+20)
	}
	if j == sign && (byteAt(text, i) != ' ' || words&sc.voc.secret == 0 || !equalFold(text[max(0, i-6):i], "bearer")) {
		return 0
	}
	j = blanksEnd(text, j, 3)
	for _, scheme := range []string{"basic ", "bearer ", "token "} {
		if j+len(scheme) < len(text) && equalFold(text[j:j+len(scheme)], scheme) {
			j += len(scheme)
		}
	}
	quote := byte(0)
	if q := byteAt(text, j); q == '"' || q == '\'' || q == '`' {
		quote, j = q, j+1
	}
	end := j
	longest := 512
	if words&sc.voc.secret == 0 {
		longest = 130
	}
	for end < len(text) && end-j < longest && !endsValue[text[end]] {
		end++
	}
	for quote == 0 && end > j && (text[end-1] == '.' || text[end-1] == '?' || text[end-1] == '\\') {
		end--
	}
	if byteAt(text, end) == '(' || byteAt(text, end) == '[' || !secretValue(text[j:end], words&sc.voc.password != 0) {
		return 0
	}
	return sc.addFinding(j, end, Secret)
}

// secretValue reports whether the value of a secret is probably real, and not a placeholder or an expression of
// source code.
func secretValue(v []byte, password bool) bool {
	digits, letters, other, upper := 0, 0, 0, 0
	var seen [256]bool
	distinct := 0
	for _, b := range v {
		switch c := class[b]; {
		case c&isDigit != 0:
			digits++
		case c&isLetter != 0:
			letters++
			if c&isUpper != 0 {
				upper++
			}
		default:
			other++
		}
		if !seen[b] {
			seen[b], distinct = true, distinct+1
		}
	}
	switch {
	case isPlaceholder(v) || isUUID(v) || isExpression(v):
		return false
	case password:
		return len(v) >= 4 && len(v) <= 128 && distinct >= 3 &&
			(digits > 0 && letters+other > 0 || other > 0 && letters > 0 && len(v) >= 6 && bytes.IndexByte(v, '/') < 0 || digits >= 6)
	}
	return len(v) >= 16 && distinct >= 8 && digits > 0 && letters > 0 && (digits > 1 || upper > 0) && shannonEntropy(v) >= 3.3 &&
		bytes.Count(v, []byte("/")) < 3 &&
		!bytes.HasPrefix(v, []byte("http"))
}

// isExpression reports whether a value is an expression of source code, such as opts.password or 0x02.
func isExpression(v []byte) bool {
	if len(v) < 11 && bytes.HasPrefix(v, []byte("0x")) {
		return true
	}
	dots := 0
	for i, b := range v {
		switch {
		case b == '.' && i > 0 && i+1 < len(v) && !isDigitByte(v[i+1]):
			dots++
		case class[b]&isLetter == 0 && b != '_' && !(isDigitByte(b) && i > 0 && i < 8):
			return false
		}
	}
	return dots > 0 && class[v[0]]&isLetter != 0
}

func isUUID(v []byte) bool {
	return len(v) == 36 && v[8] == '-' && v[13] == '-' && v[18] == '-' && v[23] == '-' && isHexText(v[:8]) && isHexText(v[24:])
}
