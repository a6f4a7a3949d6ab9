package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"retort/internal/devel/testenv"
)

const (
	token    = "ghp_R7kQ2mZx9LwT4vB8nYc3HsJ6dF1gPaE5uXoI"
	password = "p4ss/wörd+\"q\\u0041&=%20<x>"
)

func known(values ...string) *Masker {
	m := &Masker{}
	for i, v := range values {
		m.Add(NamedSecret{fmt.Sprint("github KEY", i), v})
	}
	return m
}

// spelt returns many spellings of a value, each under a name that describes it. The Masker must find all of them.
// JSON spellings are without the quotes around the string.
func spelt(v string) map[string]string {
	quoted, _ := json.Marshal(v)
	each := func(format string) string {
		var b strings.Builder
		for i := range len(v) {
			fmt.Fprintf(&b, format, v[i])
		}
		return b.String()
	}
	joined := func(separator string) string { return strings.Join(strings.Split(v, ""), separator) }
	all := map[string]string{
		"plain": v, "json": string(quoted[1 : len(quoted)-1]), "query": url.QueryEscape(v), "path": url.PathEscape(v), "html": html.EscapeString(v),
		"percent": each("%%%02x"), "PERCENT": each("%%%02X"), "twice": each("%%25%02x"), "references": each("&#%d;"), "hexadecimal references": each("&#x%X;"),
		"twice references": each("&amp;#%d;"), `\x`: each(`\x%02x`), "hex": hex.EncodeToString([]byte(v)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(v))),
		"colons": strings.TrimSuffix(each("%02x:"), ":"), "codes": strings.TrimSuffix(each("%d,"), ","), "codes on lines": strings.TrimSuffix(each("%d,\n  "), ",\n  "),
		"0x": each("0x%02x, "), "line": joined("\n"), "spaces": joined("   "), "array": `["` + joined(`", "`) + `"]`, "indented": joined("\",\n    \""),
		"case": strings.ToUpper(v), "chunks": v[:4] + " " + v[4:9] + "\n" + v[9:],
		"wrapped base64": wrap(base64.StdEncoding.EncodeToString([]byte("x"+v)), 20), "hex units": each(`\u00%02x`), `\\u`: each(`\\u00%02x`),
	}
	var octal, long, braced, wideLetters, utf16le, utf16be strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&octal, `\%03o`, v[i])
	}
	for _, r := range v {
		fmt.Fprintf(&long, `\U%08x`, r)
		fmt.Fprintf(&braced, `\u{%x}`, r)
		if '!' <= r && r <= '~' {
			wideLetters.WriteRune(r + 0xfee0)
		} else {
			wideLetters.WriteRune(r)
		}
		if r <= 0xffff {
			utf16le.Write([]byte{byte(r), byte(r >> 8)})
			utf16be.Write([]byte{byte(r >> 8), byte(r)})
		}
	}
	all["octal"], all[`\U`], all[`\u{}`], all["wide"] = octal.String(), long.String(), braced.String(), wideLetters.String()
	all["UTF-16LE in Base64"] = base64.StdEncoding.EncodeToString([]byte(utf16le.String()))
	all["UTF-16BE in Base64"] = base64.StdEncoding.EncodeToString([]byte(utf16be.String()))
	all["UTF-16LE in hex"] = hex.EncodeToString([]byte(utf16le.String()))
	all["UTF-16BE in hex"] = hex.EncodeToString([]byte(utf16be.String()))
	for name, between := range map[string]string{
		"zero width": "\u200b", "soft hyphens": "\u00ad", "word joiners": "\u2060", "accents": "\u0301", "tags": "\U000e0041", "no-break blanks": "\u00a0",
		"selectors": "\ufe0f\U000e0101", "many joiners": strings.Repeat("\u200d", 30), "fillers": "\u3164", "byte order marks": "\ufeff", "marks that turn": "\u202e\u202c",
		"bold": "<b></b>", "breaks": "<br/>", "dots": "\u00b7", "escaped": `\u200b`, "percent zero width": "%E2%80%8B", "references to what is not seen": "&#8203;", "soft hyphens by name": "&shy;",
	} {
		all[name] = joined(between)
	}
	for i, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		for n := range 4 {
			all[fmt.Sprintf("base64 %d at %d", i, n)] = enc.EncodeToString([]byte("user:"[:n] + v + "tail"[:n]))
		}
	}
	return all
}

func wrap(s string, n int) string {
	var lines []string
	for len(s) > n {
		lines, s = append(lines, s[:n]), s[n:]
	}
	return strings.Join(append(lines, s), "\r\n")
}

// leaks describes in which encoding a text still contains a value. It returns "" if the text does not contain the
// value.
func leaks(text, value string) string {
	if strings.Contains(text, value) {
		return "as it is"
	}
	for _, n := range []int{0, 1, 2} {
		core := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00"[:n] + value))
		if core = core[(8*n+5)/6 : (n+len(value))*8/6]; len(core) > 8 && (strings.Contains(text, core) || strings.Contains(text, strings.NewReplacer("+", "-", "/", "_").Replace(core))) {
			return "in base64"
		}
	}
	if strings.Contains(strings.ToLower(text), hex.EncodeToString([]byte(value))) {
		return "in hex"
	}
	return ""
}

func TestEverySpellingIsFound(t *testing.T) {
	for _, value := range []string{token, "Zx9-LwT4.vB8n_Yc3H", "correct horse battery staple", "-----BEGIN KEY-----\nMIIB9x\nQm7/+z\n-----END KEY-----"} {
		m := known(value)
		for name, text := range spelt(value) {
			for _, around := range []string{"%s", "before %s after", "x=%s&y=1", "Authorization: Bearer %s", "\n%s\n", "\"%s\""} {
				in := fmt.Sprintf(around, text)
				out := m.MaskString(in)
				if name == "case" && len(significantText(value)) < longValue {
					continue
				}
				if !strings.Contains(out, "[SECRET github KEY0]") {
					t.Errorf("%s is not found: %q", name, out)
				} else if long := len(in) - len(text); isAlnum(value[0]) && len(significantText(strings.ReplaceAll(out, "[SECRET github KEY0]", ""))) > long+12 {
					t.Errorf("%s leaves %q", name, out)
				}
			}
		}
	}
	m := known(password) // no letters separate its parts
	for _, name := range []string{"plain", "json", "query", "path", "html", "hex", "base64 0 at 1", "base64 1 at 2", "codes", "percent"} {
		if out := m.MaskString("a " + spelt(password)[name] + " b"); leaks(out, password) != "" || !strings.Contains(out, "[SECRET") {
			t.Errorf("%s: %q", name, out)
		}
	}
}

// TestFurtherSpellings checks that a secret is found in octal and binary numbers, in UTF-32 and in invisible
// characters. It must also be found if HTML tags, comments or entities separate its characters.
func TestFurtherSpellings(t *testing.T) {
	each := func(format string) string {
		var b strings.Builder
		for i := range len(token) {
			fmt.Fprintf(&b, format, token[i])
		}
		return b.String()
	}
	joined := func(separator string) string { return strings.Join(strings.Split(token, ""), separator) }
	wider := each("%c\x00\x00\x00")
	all := map[string]string{
		"octal numbers": each("0%o "), "octal numbers of Python": each("0o%o,"), "octal dump": each(" %03o"), "octal list": each("%o "), "binary": each("%08b "),
		"code points": each("U+%04X "), `\o{}`: each(`\o{%o}`), `\N{}`: each(`\N{U+%04X}`), "style sheet": each(`\%06x`), "padded references": each("&#x%08x;"),
		"UTF-32": wider, "UTF-32 in hex": hex.EncodeToString([]byte(wider)), "UTF-32 in Base64": base64.StdEncoding.EncodeToString([]byte(wider)),
		"spans": joined("</span><span>"), "many tags": joined("<b></b><i></i><u></u>"), "comments": joined("<!-- x -->"), "names": joined("&ZeroWidthSpace;&NoBreak;"), "escapes": joined(`\u200b\u200b\u200b`),
		"tag characters": invisibleForms(token)[0], "selectors": invisibleForms(token)[1],
	}
	m := known(token)
	for name, text := range all {
		if out := m.MaskString("before " + text + " after"); !strings.Contains(out, "[SECRET github KEY0]") {
			t.Errorf("%s is not found: %q", name, out)
		}
	}
}

// TestHalfIsEnough checks that half of a secret is enough to find it: if a secret is cut into two texts, at most half
// of it stays readable.
func TestHalfIsEnough(t *testing.T) {
	m := known(token)
	for at := 1; at < len(token); at++ {
		left := m.MaskString("one "+token[:at]) + m.MaskString(token[at:]+" two")
		for part := range strings.FieldsSeq(left) {
			if n := len(significantText(part)); strings.Contains(token, part) && n > len(significantText(token))/2 {
				t.Errorf("cut at %d leaves %q", at, left)
			}
		}
	}
	if out := m.MaskString("ghp_R7kQ2m…"); out != "ghp_R7kQ2m…" {
		t.Errorf("less than half tells which it is: %q", out)
	}
}

// TestLongTexts checks that a secret is found anywhere in a long text, which is scanned in several batches, and also
// where the secret crosses the boundary of two batches.
func TestLongTexts(t *testing.T) {
	m := known(token)
	for _, at := range []int{batchBytes - 50, batchBytes - 10, batchBytes, batchBytes + 36, batchBytes + 37, batchBytes + 72, 2*batchBytes - 5, 3 * batchBytes} {
		for name, text := range spelt(token) {
			in := strings.Repeat("y", at) + " " + text + " " + strings.Repeat("z", batchBytes)
			if out := m.MaskString(in); !strings.Contains(out, "[SECRET") || len(out) > len(in)-len(text)+60 {
				t.Errorf("%s at %d is not found", name, at)
			}
		}
	}
}

func TestJSONStaysJSON(t *testing.T) {
	m := known(token, password, "12345678901", `nab"c\d`, "12345678")
	chars, _ := json.Marshal(strings.Split(token, ""))
	quoted, _ := json.Marshal(password)
	for in, want := range map[string]string{
		`{"a":"` + token + `","b":[1,2]}`:                     `{"a":"[SECRET github KEY0]","b":[1,2]}`,
		`{"` + token + `":1}`:                                 `{"[SECRET github KEY0]":1}`,
		`{"n":12345678901,"m":[12345678901]}`:                 `{"n":"[SECRET github KEY2]","m":["[SECRET github KEY2]"]}`,
		`["` + token[:20] + `","` + token[20:] + `"]`:         `["[SECRET github KEY0]",""]`,
		`["` + token[:21] + `",{"x":["` + token[19:] + `"]}]`: `["[SECRET github KEY0]",{"x":["[SECRET github KEY0]"]}]`,
		`{"p":` + string(quoted) + `}`:                        `{"p":"[SECRET github KEY1]"}`,
		`"a\nab\"c\\d"`:                                       `"a[SECRET github KEY3]"`,
		`"a nab\"c\\d\n"`:                                     `"a [SECRET github KEY3]\n"`,
		`"C:\\12345678\u0031"`:                                `"C:\\[SECRET github KEY4]\u0031"`,
	} {
		if out := string(m.Mask([]byte(in))); out != want {
			t.Errorf("%s\n got %s\nwant %s", in, out, want)
		}
	}
	if out := m.Mask(chars); !json.Valid(out) || strings.Count(string(out), `""`) != len(token)-1 {
		t.Errorf("%s", out)
	}
}

// TestWorth checks for which names and values IsSecret returns true, and that a short secret inside a longer word is
// not masked.
func TestWorth(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"GITHUB_TOKEN", token, true}, {"API_KEY", "abcdefgh", true}, {"apiKey", "k3y-99", true}, {"DB_PASSWORD", "swordfish", true},
		{"X-Auth", "Zx9LwT4vB8", true}, {"PASSWORD", "postgres", false}, {"PASSWORD", "abc", false}, {"TOKEN", "true", false},
		{"TOKEN_FILE", "/run/secrets/token", false}, {"SSH_KEY", "/home/me/.ssh/id_ed25519", false}, {"MAX_TOKENS", "8192000", false},
		{"NODE_ENV", "production", false}, {"LANG", "en_GB.UTF-8", false}, {"PGHOST", "db.internal.example", false}, {"TEAM", "T0123456789", false},
		{"WORKSPACE", "8d3f2c1e-7b64-4a09-9e1f-2a7c5b9d0e13", false}, {"ANYTHING", token, true}, {"ANYTHING", "x8Kq2ZtV0pLmW7rNbYcD", true},
		{"COMMAND", "uvx some-package==1.2.3", false}, {"PACKAGE", "@modelcontextprotocol/server-github@2025.4.8", false}, {"PUBLIC_KEY", "abcdefghij", false},
		{"AWS_SECRET_ACCESS_KEY", "/aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7", true}, {"CITY", "Llanfairpwllgwyngyll", false}, {"SORT_KEY", "customer_id", false}, {"AUTH_PROVIDER", "google-oauth", false},
	} {
		if got := IsSecret(c.name, c.value); got != c.want {
			t.Errorf("%s=%s: %v", c.name, c.value, got)
		}
	}
	m := known("abc", "k3y-99")
	if out := m.MaskString("abc monk3y-99x k3y-99, k3y-99"); out != "abc monk3y-99x [SECRET github KEY1], [SECRET github KEY1]" {
		t.Error(out)
	}
}

func TestSources(t *testing.T) {
	values := func(found []NamedSecret) string {
		var all []string
		for _, s := range found {
			all = append(all, s.Label+"="+s.Value)
		}
		slices.Sort(all)
		return strings.Join(slices.Compact(all), " ")
	}
	for got, want := range map[string]string{
		values(FromVariable("pg", "DATABASE_URL", "postgres://bob:s3cr%2Fet@db:5432/x?sslmode=disable")):                                                       "pg DATABASE_URL=s3cr/et",
		values(FromVariable("pg", "DATABASE_URL", "postgres://bob:s3cr#t-99@db:5432/x")):                                                                       "pg DATABASE_URL=s3cr#t-99",
		values(FromVariable("ms", "CONN", "Server=db;User Id=sa;Password=hunter2000;")):                                                                        "ms CONN=hunter2000",
		values(FromVariable("n", "OPENAPI_MCP_HEADERS", `{"Authorization":"Bearer ntn_x8Kq2ZtV0pLmW7"}`)):                                                      "n OPENAPI_MCP_HEADERS=ntn_x8Kq2ZtV0pLmW7",
		values(FromHeader("linear", "Authorization", "Bearer lin_api_x8Kq2ZtV")):                                                                               "linear Authorization=lin_api_x8Kq2ZtV",
		values(FromHeader("j", "Authorization", "Basic Ym9iOmh1bnRlcjIwMDA=")):                                                                                 "j Authorization=Ym9iOmh1bnRlcjIwMDA= j Authorization=hunter2000",
		values(FromHeader("j", "Cookie", "sid=x8Kq2ZtV0p; lang=en")):                                                                                           "j Cookie=x8Kq2ZtV0p",
		values(FromAddress("s URL", "https://h.example/services/T0/B0/x8Kq2ZtV0pLmW7rNbYcD?api_key=abc12345&page=2")):                                          "s URL=abc12345 s URL=x8Kq2ZtV0pLmW7rNbYcD",
		values(FromArguments("s", []string{"-y", "pkg@1.2", "--token=abc12345", "--api-key", "def67890", "--root", "/srv/data", "postgres://u:p4ssw0rd@h/d"})): "s api-key=def67890 s argument=p4ssw0rd s token=abc12345",
		values(FromArguments("s", []string{"--header", "Authorization: Bearer x8Kq2ZtV0p", "TOKEN=abc12345"})):                                                 "s Authorization=x8Kq2ZtV0p s TOKEN=abc12345",
	} {
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// TestOrder checks that the result does not depend on the order in which overlapping secrets are registered.
func TestOrder(t *testing.T) {
	values := []string{token, token[:20], token[10:], "abcdefgh-99", "abcdefgh"}
	text := "x " + token + " y abcdefgh-99 z " + token[:20] + base64.StdEncoding.EncodeToString([]byte(token))
	var want string
	for range 20 {
		m := &Masker{}
		for _, i := range rand.Perm(len(values)) {
			m.Add(NamedSecret{"s V" + strconv.Itoa(i), values[i]})
		}
		out := m.MaskString(text)
		if want == "" {
			want = out
		}
		if out != want || m.MaskString(out) != out {
			t.Fatalf("%s\n%s", out, want)
		}
	}
}

func TestNothingFoundAllocatesNothing(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	m, text := known(token, password), clean(2<<10)
	m.Mask(text)
	if n := testing.AllocsPerRun(100, func() { m.Mask(text) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzMask(f *testing.F) {
	for name := range spelt(token) {
		f.Add("x8Kq2ZtV0pLmW7rNbYcD", `{"a":"b\u00e9`, `\","c":[1]}`, name)
	}
	f.Add(password, `{"`, `":"\n"}`, "json")
	f.Add("nabcdef1", `"\`, `"`, "plain")
	f.Fuzz(func(t *testing.T, value, before, after, name string) {
		value = strings.TrimSpace(value)
		if len(value) < minValue || len(value) > 200 || len(before)+len(after) > 1<<12 || !utf8.ValidString(value) {
			return
		}
		m := known(value)
		text := before + value + after
		out := m.MaskString(text)
		if len(value) >= indexWindow && strings.Contains(out, value) && !strings.Contains("[SECRET github KEY0]", value) {
			t.Errorf("%q is in %q of %q", value, out, text)
		}
		document, _ := json.Marshal(map[string]any{before: []string{after, text}, "x": text})
		if in := []byte(text); json.Valid(in) && !json.Valid(m.Mask(in)) {
			t.Errorf("%q became %q", in, m.Mask(in))
		}
		masked := m.Mask(document)
		if !json.Valid(masked) {
			t.Errorf("%q became %q", document, masked)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r == utf8.RuneError || r >= 0x80 }) || len(significantText(value)) < 12 || len(value) < 12 {
			return
		}
		if spelling, ok := spelt(value)[name]; ok && name != "case" && name != "chunks" {
			if out := m.MaskString("| " + spelling + " |"); !strings.Contains(out, "[SECRET") && !strings.ContainsAny(value, `\%&`) {
				t.Errorf("%s of %q is not found in %q", name, value, out)
			}
		}
	})
}

// clean returns n bytes of text that resembles the result of a tool and contains no secrets.
func clean(n int) []byte {
	var b strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `{"id":%d,"title":"Fix the build of \"release/%d\"","body":"It fails since yesterday.\nSee https://ci.example/run/%x for more","open":true},`, i, i%7, r.Uint64())
	}
	return []byte(b.String())[:n]
}

func BenchmarkMask(b *testing.B) {
	m := &Masker{}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 50 {
		m.Add(NamedSecret{fmt.Sprint("s K", i), fmt.Sprintf("ghp_%016x%016xAz", r.Uint64(), r.Uint64())})
	}
	for _, n := range []int{2 << 10, 1 << 20} {
		text := clean(n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				m.Mask(text)
			}
		})
	}
	b.Run("hostile", func(b *testing.B) {
		text := []byte(strings.Repeat(token[:18]+" ", 1<<12))
		m := known(token, token[:24]+"zzzzzzzzzzzzzzzzz")
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			m.Mask(text)
		}
	})
}

// TestDrop checks that dropped values are no longer masked and make room for others.
func TestDrop(t *testing.T) {
	var m Masker
	m.Add(NamedSecret{"a", "first-secret-value"}, NamedSecret{"b", "other-secret-value"})
	m.DropValues("first-secret-value", "unknown")
	if got := m.MaskString("first-secret-value other-secret-value"); !strings.HasPrefix(got, "first-secret-value ") || strings.Contains(got, "other-secret") {
		t.Error(got)
	}
	for i := range 50 {
		v := fmt.Sprintf("rotating-%d-value", i)
		m.Add(NamedSecret{"c", v})
		if m.MaskString(v) == v {
			t.Fatal(v)
		}
		m.DropValues(v)
	}
	m.DropValues("other-secret-value")
	if m.MaskString("x other-secret-value") != "x other-secret-value" {
		t.Error("the last one stays")
	}
}
