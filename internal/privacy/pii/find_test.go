package pii

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// published lists example values from published sources, each with the context word that must precede it. An ID with
// a distinctive spelling has no context word, because it needs none.
var published = []struct {
	typ         Type
	words, text string
}{
	{Email, "", "john.smith+news@example.co.uk"}, {Email, "", "hanne.müller@example.com"}, {Email, "", "用户@例え.jp"}, {Email, "", "info@xn--mller-kva.de"}, {Email, "", "o'brien@example.com"},
	{Email, "", "иван@почта.рф"}, {Email, "", "a@b.io"}, {Email, "", "ana_lima-99@mail.example.museum"},
	{CreditCard, "", "4111 1111 1111 1111"}, {CreditCard, "", "4111111111111111"}, {CreditCard, "", "5555-5555-5555-4444"}, {CreditCard, "", "378282246310005"}, {CreditCard, "", "3782 822463 10005"},
	{CreditCard, "", "6011111111111117"}, {CreditCard, "", "3530111333300000"}, {CreditCard, "card ", "30569309025904"}, {CreditCard, "", "2223003122003222"}, {CreditCard, "visa ", "4222222222222"},
	{CreditCard, "", "6200000000000005"},
	{IBAN, "", "DE89370400440532013000"}, {IBAN, "", "GB82 WEST 1234 5698 7654 32"}, {IBAN, "", "NO9386011117947"}, {IBAN, "", "FR14 2004 1010 0505 0001 3M02 606"}, {IBAN, "", "MT84MALT011000012345MTLCAST001S"},
	{IBAN, "", "CH93 0076 2011 6238 5295 7"}, {IBAN, "", "PL61 1090 1014 0000 0712 1981 2874"}, {IBAN, "", "BR1800360305000010009795493C1"}, {IBAN, "", "SA0380000000608010167519"},
	{IP, "", "192.168.17.4"}, {IP, "", "8.8.4.4"}, {IP, "", "203.0.113.195"}, {IP, "", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"}, {IP, "", "2001:db8::1"}, {IP, "", "fe80::1ff:fe23:4567:890a"}, {IP, "", "::ffff:192.0.2.128"},
	{MAC, "", "00:1a:2b:3c:4d:5e"}, {MAC, "", "00-1A-2B-3C-4D-5E"},
	{Wallet, "", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"}, {Wallet, "", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"}, {Wallet, "", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}, {Wallet, "", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"},
	{Wallet, "", "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"}, {Wallet, "", "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh"},
	{Phone, "", "+1 212 555 0123"}, {Phone, "", "(212) 555-0123"}, {Phone, "", "212-555-0123"}, {Phone, "", "+49 30 23125 123"}, {Phone, "", "+44 (0)20 7946 0958"}, {Phone, "", "020 7946 0958"}, {Phone, "", "01 42 68 53 00"},
	{Phone, "tel. ", "030 123456"}, {Phone, "call ", "2125550123"}, {Phone, "", "+33142685300"}, {Phone, "", "1-800-234-5678"}, {Phone, "", "+81 3-5550-1234"}, {Phone, "", "+55 11 91234-5678"}, {Phone, "", "0049 30 23125123"},
	{Phone, "móvil ", "612 345 678"}, {Phone, "", "+47 22 12 34 56"}, {Phone, "", "555-123-4567"}, {Phone, "", "+1 (555) 123-4567"}, {Phone, "", "+91 98765 43210"}, {Phone, "", "212.555.0123"}, {Phone, "", "+1-212-555-0123 ext. 42"},
	{SSN, "", "536-90-4399"}, {SSN, "SSN ", "536904399"}, {SSN, "", "912-90-3456"},
	{NationalID, "NHS number ", "943 476 5919"}, {NationalID, "NHS no. ", "9434765919"}, {NationalID, "", "AB123456C"}, {NationalID, "", "AB 12 34 56 C"}, {NationalID, "UTR ", "1955839661"}, {NationalID, "PPS ", "6433435F"},
	{NationalID, "PPS number ", "6433435OA"}, {NationalID, "Steuer-ID: ", "36 574 261 809"}, {NationalID, "IdNr. ", "36574261809"}, {NationalID, "", "15070649C103"}, {NationalID, "", "65 170839 J 003"}, {NationalID, "", "2 95 10 99 126 111 93"},
	{NationalID, "", "295109912611193"}, {NationalID, "", "54362315K"}, {NationalID, "", "X2482300W"}, {NationalID, "NIF ", "501 964 843"}, {NationalID, "", "RCCMNL83S18D969H"}, {NationalID, "PESEL ", "44051401359"},
	{NationalID, "NIP ", "856-734-62-15"}, {NationalID, "BSN ", "111222333"}, {NationalID, "", "85.07.30-033 28"}, {NationalID, "", "756.9217.0769.85"}, {NationalID, "SVNR ", "1237 010180"}, {NationalID, "", "131052-308T"},
	{NationalID, "personnummer ", "880320-0016"}, {NationalID, "fødselsnummer ", "15108695088"}, {NationalID, "CPR ", "211062-5629"}, {NationalID, "kennitala ", "120174-3399"}, {NationalID, "rodné číslo ", "710319/2745"},
	{NationalID, "CNP ", "1630615123457"}, {NationalID, "EGN ", "7523169263"}, {NationalID, "isikukood ", "36805280109"}, {NationalID, "asmens kodas ", "33309240064"}, {NationalID, "AMKA ", "01013099997"}, {NationalID, "AFM ", "094259216"},
	{NationalID, "OIB ", "33392005961"}, {NationalID, "EMŠO ", "0101006500006"}, {NationalID, "TCKN ", "17291716060"}, {NationalID, "ИНН ", "123456789047"}, {NationalID, "", "112-233-445 95"}, {NationalID, "РНОКПП ", "1759013776"},
	{NationalID, "NPI ", "1234567893"}, {NationalID, "", "1EG4-TE5-MK73"}, {NationalID, "SIN ", "046 454 286"}, {NationalID, "", "390.533.447-05"}, {NationalID, "CPF ", "39053344705"}, {NationalID, "", "16.727.230/0001-97"},
	{NationalID, "CUIT ", "20-05536168-2"}, {NationalID, "", "12.531.909-2"}, {NationalID, "", "BOXW310820HNERXN09"}, {NationalID, "RFC ", "GODE561231GR8"}, {NationalID, "NIT ", "213.123.432-1"}, {NationalID, "cédula ", "1714307103"},
	{NationalID, "", "2341 2341 2346"}, {NationalID, "Aadhaar ", "234123412346"}, {NationalID, "PAN ", "ACUPA7085R"}, {NationalID, "", "27AAPFU0939F1ZV"}, {NationalID, "", "360426199101010071"}, {NationalID, "", "A123456(3)"},
	{NationalID, "", "A123456789"}, {NationalID, "my number ", "621498320257"}, {NationalID, "", "971013-9019902"}, {NationalID, "", "S1234567D"}, {NationalID, "MyKad ", "770305-02-1234"}, {NationalID, "Thai ID ", "3100600445635"},
	{NationalID, "Teudat Zehut ", "039337423"}, {NationalID, "SA ID ", "7503305044089"}, {NationalID, "TFN ", "123 456 782"}, {NationalID, "", "51 824 753 556"}, {NationalID, "Medicare ", "2123 45670 1"}, {NationalID, "IRD ", "49-091-850"},
	{NationalID, "", "34201-0891231-8"}, {NationalID, "KVNR ", "K482135077"}, {NationalID, "LANR ", "482135801"}, {NationalID, "", "X2482300-W"}, {NationalID, "TIN ", "214-308-675-000"}, {NationalID, "외국인등록번호 ", "850712-5123456"},
	{Licence, "licence ", "HALVO601152MR9AB"}, {Passport, "여권 ", "M482A1937"}, {MAC, "MAC ", "01-23-45-67-89-AB"}, {MAC, "MAC address: ", "001a.2b3c.4d5e"}, {CreditCard, "card ", "213161594239298"}, {IBAN, "", "de89370400440532013000"},
	{Name, "my maiden name is ", "Quux"}, {Phone, "", "651-234-2345"},
	{Passport, "passport number ", "C01X00T47"}, {Passport, "Passport: ", "533380006"}, {Passport, "Reisepass ", "C4FJH7P36"}, {Licence, "driver's license ", "D1234567"}, {Licence, "Führerschein ", "B072RRE2I55"},
	{Address, "", "42 Elm Street"}, {Address, "", "Lindenstraße 7"}, {Address, "", "12 rue de Rivoli"}, {Address, "", "Calle Mayor 5"}, {Address, "", "221 South Main Street"},
	{DateOfBirth, "born on ", "12 March 1985"}, {DateOfBirth, "DOB: ", "03/12/1985"}, {DateOfBirth, "date of birth ", "1985-03-12"}, {DateOfBirth, "geboren am ", "12.03.1985"}, {DateOfBirth, "né le ", "12 mars 1985"},
	{DateOfBirth, "nacida el ", "3 de julio de 1990"}, {DateOfBirth, "Birthday: ", "July 4th, 1976"},
}

func TestPublishedExamples(t *testing.T) {
	s := New(Options{Regions: []string{"US", "GB", "DE", "FR", "ES"}})
	for _, p := range published {
		for _, frame := range []string{"%s", "see %s.", "%s, and so on", "\"%s\"", "(%s)", "x\n%s\ny"} {
			text := fmt.Sprintf(frame, p.words+p.text)
			want := strings.Index(text, p.text)
			found := s.FindText(nil, []byte(text))
			if len(found) != 1 || found[0] != (TypedSpan{want, want + len(p.text), p.typ}) {
				t.Errorf("%q: found %v, want %s at %d-%d", text, show(text, found), p.typ, want, want+len(p.text))
				break
			}
		}
	}
}

func show(text string, fs []TypedSpan) (s []string) {
	for _, f := range fs {
		s = append(s, fmt.Sprintf("%s %q", f.Type, text[f.Start:f.End]))
	}
	return s
}

// TestNearMisses checks that text which merely resembles personal data is not found. Examples are numbers with one
// wrong digit, numbers without a context word, and numbers inside a longer text.
func TestNearMisses(t *testing.T) {
	s := New(Options{})
	for _, text := range []string{
		"4111111111111112", "1234567890123456", "1716239022123", "0.4111111111111111", "id-4111111111111111x", "41111111111111111111",
		"DE89370400440532013001", "XX89370400440532013000", "DE8937040044053201300", "GB00WEST12345698765432",
		"000-12-3456", "666-12-3456", "123-00-4567", "123-45-0000", "1123-45-67890", "2024-05-17", "17-05-2024", "12:34:56", "2024-05-17T10:20:30.123Z", "20240517T102030Z", "20240517102030",
		"256.1.1.1", "1.2.3", "v1.2.3.4", "version 10.20.30.40", "Chrome/120.0.6099.109", "Chrome/120.0.0.0", "127.0.0.1", "0.0.0.0", "1.2.3.4.5", "lib-1.2.3.4-x86", "::1", "::", "std::string", "a::b", "12:34:56:78", "00:00:00:00:00:00", "FF:FF:FF:FF:FF:FF", "::ffff:256.0.0.1", "fade00000000000000", "1234.5678.9abc",
		"9434765918", "44051401359", "111222333", "1955839661", "123 456 782", "39053344705", "36574261809", "234123412347", "54362315A", "X2482300A", "RCCMNL83S18D969I",
		"person@", "@example.com", "a@b", "foo@2x.png", "getty@tty1.service", "npm@10.2.3", "left-pad@1.3.0", "git@github.com:org/repo.git", "ssh://git@github.com/org/repo", "@scope/pkg@1.2.3", "decorator @app.route",
		"https://example.com:8080/path@x", "postgres://user:password@localhost/db", "https://${USER}:${PASS}@host/",
		"550e8400-e29b-41d4-a716-446655440000", "d41d8cd98f00b204e9800998ecf8427e", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "sha512-9rxmVp1cW8DzCbvyC9bAF7iXv1cVVTlrPkp5q1vTVlxXkbsvhsXaVbJzZB7n0yJvWQ==",
		"1,234,567.89", "$1,234,567", "12 345 678", "100 200 300", "1 000 000", "3.14159265358979", "1e10", "+0100", "+00:00", "-122.4194155", "37.7749295", "(12) 3456", "0x1A2B3C4D", "ISBN 978-3-16-148410-0", "1-2-3-4-5-6-7", "10/10/10",
		"password: required", "password: ********", "token: string", "api_key: ${API_KEY}", "max_tokens: 4096", "the password is not stored", "secret = os.getenv('X')", "Bearer token", "token: 550e8400-e29b-41d4-a716-446655440000",
		"born to run", "passport control", "license: Apache-2.0", "license MIT", "call 911", "phone home", "tel 12", "card 4111",
		"Dear all, thanks", "Hi there", "Best regards", "The Inc", "File As AS", "Contact Support", "Hello World", "Hello Gopher!", "in San Francisco today", "in Las Vegas, NV, on", "0 0 0-1.41.996.996 0 0 0", "cachedAt + 31536000000", "password: opts.password || x", "nextPageToken: \"CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA\"", "pageToken=CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA", "cancelToken = source17.token.of.the9.request", "publicKey: \"CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA\"", "userPassword = form.value.password", "[\"token\", \"a-column-of-the-table-2\"]", "loginToken := os.Getenv(\"X1\")", "const token = fs6.readFileSync(x)", "PASSWORD: 0x02,", "section 19.6.1.2 says", "// 7.6.3.1", "MA 02110-1301", "JIS X 0201-1976", "Max-Age", "http://user:password@dummy.faketld/", "https://${token}@github.com/x", "BufferPool BufferPool", "Main Street", "Wall Street 2008 crisis was", "Section 12 Close", "the gateway 12", "Los Angeles Times reported", "The Dataset Viewer said", "Dear Customer,", "New York", "South Street",
		"0012345678", "000000000000", "+12", "+123456", "00:00", "2,5551234567", "#2125550123",
	} {
		if found := s.FindText(nil, []byte(text)); len(found) > 0 {
			t.Errorf("%q: found %v", text, show(text, found))
		}
	}
}

// TestSecrets checks that secrets are found by their format or by a word before them. The test assembles the secrets
// at run time, because source files must contain no secrets.
func TestSecrets(t *testing.T) {
	s := New(Options{})
	alphabet := "aB3dE5fG7hJ9kLmN1pQrS2tUvW4xYz6"
	fill := func(n int) string { return strings.Repeat(alphabet, n/len(alphabet)+1)[:n] }
	hexes := strings.Repeat("1a2b3c4d5e6f7089", 8)
	digits := "123456789012"
	for name, secret := range map[string]string{
		"github": "ghp" + "_" + fill(36), "github fine": "github" + "_pat_" + fill(82), "gitlab": "glpat" + "-" + fill(20), "aws": "AKIA" + strings.ToUpper(fill(16)), "slack": "xoxb" + "-" + digits + "-" + digits + "-" + fill(24),
		"stripe": "sk" + "_live_" + fill(24), "openai": "sk" + "-proj-" + fill(60), "anthropic": "sk" + "-ant-api03-" + fill(93) + "AA", "google": "AIza" + fill(35), "npm": "npm" + "_" + fill(36), "sendgrid": "SG" + "." + fill(22) + "." + fill(43),
		"jwt": "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + "." + fill(43), "digitalocean": "dop" + "_v1_" + hexes[:64], "huggingface": "hf" + "_" + strings.Repeat("aBcDeFgHiJkLmNoPqR", 2)[:34], "shopify": "shpat" + "_" + hexes[:32],
		"postman": "PMAK" + "-" + hexes[:24] + "-" + hexes[:34], "vault": "hvs" + "." + fill(95), "pypi": "pypi" + "-AgEIcHlwaS5vcmc" + fill(60), "twilio": "SK" + hexes[:32], "notion": "ntn" + "_" + "12345678901" + fill(35), "key": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE" + fill(200) + "\n-----END RSA " + "PRIVATE KEY-----",
	} {
		for _, frame := range []string{"%s", "use %s now", "KEY=%s\n", "\"%s\","} {
			text := fmt.Sprintf(frame, secret)
			at := strings.Index(text, secret)
			if found := s.FindText(nil, []byte(text)); len(found) != 1 || found[0] != (TypedSpan{at, at + len(secret), Secret}) {
				t.Errorf("%s in %q: found %v", name, frame, show(text, found))
			}
		}
	}
	for frame, secret := range map[string]string{
		"password: %s": "hun" + "ter2!x", "Authorization: Bearer %s": fill(30), "api_key = \"%s\"": fill(24), "Passwort=%s": "Geh" + "eim7!", "https://joe:%s": "s3cr3t" + "P4", "aws_secret_access_key=%s": fill(40), "stripeApiKey = \"%s\"": fill(24), "var fooToken string = \"%s\"": fill(32), "dbPassword := `%s`": "hun" + "ter2!x", "X_TOKEN ?= '%s'": fill(24), "$barSecret .= \"%s\"": fill(24), "setenv(\"X_TOKEN\", \"%s\")": fill(24), "<quuxToken>\n  %s\n</quuxToken>": fill(24), "clientSecret: %s": fill(24), "contraseña: %s": "Perr" + "o_44",
	} {
		text := fmt.Sprintf(frame, secret)
		if strings.HasPrefix(frame, "https") {
			text += "@example.com/x"
			secret = "joe:" + secret
		}
		at := strings.Index(text, secret)
		if found := s.FindText(nil, []byte(text)); len(found) != 1 || found[0] != (TypedSpan{at, at + len(secret), Secret}) {
			t.Errorf("%q: found %v", text, show(text, found))
		}
	}
}

// TestManyAtOnce checks that one Scanner and one list of known values return the same results when many goroutines
// use them.
func TestManyAtOnce(t *testing.T) {
	s, g := New(Options{}), &KnownValues{}
	raw := crm(seeded(), 20<<10)
	want := string(s.ReplaceValues(raw, g, newTokens()))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				if got := string(s.ReplaceValues(raw, g, newTokens())); got != want {
					t.Error("not what one alone finds")
					return
				}
			}
		})
	}
	all.Wait()
}

// TestOneDigitChanged checks for each published ID with a checksum that at most a third of its variants with one
// changed digit are still found.
func TestOneDigitChanged(t *testing.T) {
	s := New(Options{Off: []Type{Phone}})
	for _, p := range published {
		switch p.typ {
		case NationalID, IBAN, CreditCard:
		default:
			continue
		}
		if p.typ == CreditCard && p.words != "" && len(p.text) >= 15 {
			continue // a word calls it a card's, so its checksum does not count
		}
		if p.text == "1EG4-TE5-MK73" || p.text == "211062-5629" || p.text == "GODE561231GR8" || p.text == "ACUPA7085R" || p.text == "770305-02-1234" || p.text == "AB123456C" || p.text == "AB 12 34 56 C" || p.text == "34201-0891231-8" || p.text == "1714307103" || p.text == "214-308-675-000" || p.text == "850712-5123456" {
			continue // no checksum, but a form
		}
		changed, found := 0, 0
		for i, b := range []byte(p.text) {
			if !isDigitByte(b) {
				continue
			}
			text := []byte(p.words + p.text)
			text[len(p.words)+i] = '0' + (b-'0'+1)%10
			changed++
			found += len(s.FindText(nil, text))
		}
		if found*3 > changed {
			t.Errorf("%s: %d of %d changes are found", p.text, found, changed)
		}
	}
}

// TestMintedValues checks that the TokenMinter gets each value both decoded and as spelled in the document.
func TestMintedValues(t *testing.T) {
	for in, want := range map[string]FoundValue{
		`{"a":"x\u0040y.com"}`:                            {Type: Email, Text: "x@y.com", Raw: `x\u0040y.com`},
		`{"first_name":"M\u00fcl\/ler"}`:                  {},
		`{"first_name":"M\u00fcller"}`:                    {Type: Name, Text: "Müller", Raw: `M\u00fcller`},
		`{"a":"see joe%40y.com"}`:                         {Type: Email, Text: "joe@y.com", Raw: "joe%40y.com"},
		"&#x6a;oe&commat;y.com":                           {Type: Email, Text: "joe@y.com", Raw: "&#x6a;oe&commat;y.com"},
		`{"phone":2125550123}`:                            {Type: Phone, Text: "2125550123", Raw: "2125550123", Number: true},
		`{"in":"{\"phone\":2125550123}"}`:                 {Type: Phone, Text: "2125550123", Raw: "2125550123", Number: true},
		`{"in":"{\"mail\":\"x\\u0040y.com\"}"}`:           {Type: Email, Text: "x@y.com", Raw: `x\\u0040y.com`},
		`{"bob@x.com":1}`:                                 {Type: Email, Text: "bob@x.com", Raw: "bob@x.com"},
		`{"a":"\ud83d\ude00 x@y.com"}`:                    {Type: Email, Text: "x@y.com", Raw: "x@y.com"},
		`{"a":[1,"2",{"b":"q\"` + "\u00e9" + `@y.com"}]}`: {Type: Email, Text: "é@y.com", Raw: "é@y.com"},
	} {
		v := newTokens()
		New(Options{}).ReplaceValues([]byte(in), nil, v)
		if want == (FoundValue{}) {
			if len(v.all) != 0 {
				t.Errorf("%s: minted %+v", in, v.all)
			}
		} else if len(v.all) != 1 || v.all[0] != want {
			t.Errorf("%s: minted %+v", in, v.all)
		}
	}
}

// TestNamesInsideAddresses checks that a known name inside an e-mail address does not split the address, in any
// letter case.
func TestNamesInsideAddresses(t *testing.T) {
	g := &KnownValues{}
	g.AddExact(Name, "Ingrid")
	g.AddExact(Name, "Ola Holm")
	for text, want := range map[string]string{
		"write to ingrid.holm@corp.example or ingrid": "email ingrid.holm@corp.example|name ingrid",
		"ingrid@corp.example":                         "email ingrid@corp.example", "INGRID-holm@corp.example!": "email INGRID-holm@corp.example",
		"ingrid, ola holm: a.ingrid@corp.example": "name ingrid|name ola holm|email a.ingrid@corp.example", "ingrid @corp": "name ingrid",
	} {
		v := newTokens()
		New(Options{}).ReplaceValues([]byte(text), g, v)
		var got []string
		for _, x := range v.all {
			got = append(got, string(x.Type)+" "+x.Text)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}
