package secrets

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// IsSecret reports whether a value, such as that of an environment variable, is a secret. If its name suggests one,
// the value counts as secret unless it is so short or common that masking it would damage ordinary texts. Otherwise
// the value counts as secret only if it looks random.
func IsSecret(name, value string) bool {
	v := strings.TrimSpace(value)
	if len(v) < minValue || isPath(v) || slices.Contains(usual, strings.ToLower(v)) {
		return false
	}
	switch confidenceOfName(name) {
	case surely:
		return len(v) >= indexWindow || countKinds(v) >= 2
	case perhaps:
		return len(v) >= indexWindow && (isMixed(v) || countKinds(v) >= 3)
	}
	return looksRandom(v)
}

// usual lists common values that do not count as secrets, even if the name of a variable suggests that its value is
// one.
var usual = []string{
	"access", "account", "admin", "administrator", "anonymous", "authorization", "basic", "bearer", "change-me",
	"changeme", "changeit", "cookie",
	"database", "default", "development", "disable", "disabled", "docker", "dummy", "enabled", "example", "github",
	"google", "localhost", "mariadb", "mongodb",
	"mysql", "oauth2", "optional", "password", "password1", "postgres", "postgresql", "private", "prod", "production",
	"public", "rabbitmq", "redis", "required",
	"root", "sandbox", "sample", "secret", "session", "staging", "string", "system", "testing", "testtest",
	"undefined", "unknown", "username", "your-api-key",
	"your-token", "none", "null", "true", "false",
}

// nameConfidence says how strongly a name suggests that its value is a secret.
type nameConfidence int

const (
	nothing nameConfidence = iota
	perhaps                // a "key" may also be that of a database table
	surely
)

// confidenceOfName returns how strongly a name suggests that its value is a secret.
func confidenceOfName(name string) nameConfidence {
	words := nameWords(name)
	if len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return w == "public" || w == "max" || w == "limit" }) {
		return nothing
	}
	if slices.Contains(about, words[len(words)-1]) {
		return nothing
	}
	has := func(list []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	joined := strings.Join(words, "")
	switch {
	case has(sureWords) || slices.ContainsFunc(sureParts, func(p string) bool { return strings.Contains(joined, p) }):
		return surely
	case has(perhapsWords):
		return perhaps
	}
	return nothing
}

var (
	sureWords    = []string{"pass", "pwd", "pw", "jwt", "bearer"}
	perhapsWords = []string{"key", "auth", "pat", "sig", "salt", "dsn"}
	sureParts    = []string{
		"token", "secret", "password", "passwd", "passphrase", "apikey", "credential", "authorization", "cookie",
		"privatekey", "accesskey", "signature",
	}
	// about lists last words of names, such as url in token_url, with which a name tells something about a secret.
	// The values of such names are not secret.
	about = []string{"file", "path", "dir", "folder", "url", "uri", "host", "count", "ttl", "expiry", "name", "type", "enabled", "method", "mode", "id", "user", "username", "region", "version", "length", "size",
		"provider", "issuer", "audience", "scope", "scopes", "domain", "endpoint", "server", "realm", "algorithm",
		"format", "prefix", "header", "storage"}
)

// nameWords splits a name such as API_KEY, apiKey or --api-key into lower-case words.
func nameWords(name string) []string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// makers lists the prefixes of tokens by which well-known issuers, such as GitHub, mark the tokens that they make.
var makers = []string{
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_", "rk_", "pk_live_", "xoxb-",
	"xoxp-", "xoxa-", "xapp-", "AKIA", "ASIA", "AIza", "ya29.", "ntn_", "secret_", "lin_api_", "npm_", "pypi-", "hf_",
	"dop_v1_", "SG.", "shpat_", "whsec_", "eyJ",
}

// looksRandom reports whether a value is long and irregular enough to have been generated at random. A value with the
// prefix of a well-known issuer's token may be shorter.
func looksRandom(v string) bool {
	if len(v) < 16 || strings.ContainsAny(v, " \t\n") || strings.Contains(v, "://") {
		return false
	}
	if slices.ContainsFunc(makers, func(m string) bool { return strings.HasPrefix(v, m) }) {
		return isMixed(v)
	}
	return len(v) >= 20 && isMixed(v) && !isUUID(v) && !strings.ContainsAny(v, "./@:,\\") && shannonEntropy(v) >= 3.5
}

// isPath reports whether a value is a file path.
func isPath(v string) bool {
	for _, root := range []string{"/", "./", "../", "~/"} {
		if rest, ok := strings.CutPrefix(v, root); ok {
			parts := strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })
			return !slices.ContainsFunc(parts, func(p string) bool { return len(p) >= 16 && looksRandom(p+"Aa0zZ") && countKinds(p) >= 3 })
		}
	}
	return len(v) > 3 && unicode.IsLetter(rune(v[0])) && (v[1:3] == `:\` || v[1:3] == ":/" && v[3] != '/')
}

func isUUID(v string) bool {
	if len(v) != 36 {
		return false
	}
	for i := range len(v) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (v[i] == '-') {
			return false
		}
	}
	return true
}

// countKinds returns how many of four kinds of characters a value contains: lower case, upper case, digits and
// others.
func countKinds(v string) int {
	var seen [4]bool
	for i := range len(v) {
		switch c := v[i]; {
		case isLower(c):
			seen[0] = true
		case isUpper(c):
			seen[1] = true
		case unicode.IsDigit(rune(c)):
			seen[2] = true
		default:
			seen[3] = true
		}
	}
	n := 0
	for _, s := range seen {
		if s {
			n++
		}
	}
	return n
}

// isMixed reports whether a text mixes letters with digits, or has more than one capital after a lower-case letter.
// Ordinary words do neither.
func isMixed(v string) bool {
	digits, letters, humps := 0, 0, 0
	for i := range len(v) {
		switch c := v[i]; {
		case unicode.IsDigit(rune(c)):
			digits++
		case isUpper(c) && i > 0 && isLower(v[i-1]):
			humps++
			letters++
		case kept[c]:
			letters++
		}
	}
	return digits > 0 && letters > 0 || humps > 1
}

// shannonEntropy returns the Shannon entropy of v in bits per byte.
func shannonEntropy(v string) (bits float64) {
	var count [256]int
	for i := range len(v) {
		count[v[i]]++
	}
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(v))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
