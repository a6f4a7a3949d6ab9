package relay

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	xunicode "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// hideMail replaces the e-mail address that the tests use by [EMAIL_1].
func hideMail(text []byte) ([]byte, error) {
	return bytes.ReplaceAll(text, []byte("hanne@corp.example"), []byte("[EMAIL_1]")), nil
}

func encoded(t testing.TB, e encoding.Encoding, text string) []byte {
	t.Helper()
	data, err := e.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestEncodings checks that text is read in each encoding. The encoding is found by the byte order mark, by a
// declaration, or by the bytes themselves.
func TestEncodings(t *testing.T) {
	little, big := xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM), xunicode.UTF16(xunicode.BigEndian, xunicode.IgnoreBOM)
	for _, c := range []struct {
		text, mime string
		e          encoding.Encoding
	}{
		{"Müller, Größe", "", charmap.Windows1252},
		{"Müller", "text/csv; charset=windows-1252", charmap.Windows1252},
		{"Anna Петрова живёт здесь", "text/csv", charmap.Windows1251},
		{"Świątek", "text/plain; charset=windows-1250", charmap.Windows1250},
		{"Świątek", "text/plain; charset=windows-1250; charset=x", charmap.Windows1250}, // not a valid MIME type
		{"Müller", "text/plain; charset=cp850", charmap.CodePage850},
		{"名前は山田太郎です", "", japanese.ShiftJIS},
		{"名前は山田太郎です", "text/plain; charset=iso-2022-jp", japanese.ISO2022JP},
		{"名前は山田太郎です", "", japanese.ISO2022JP},
		{"姓名是王小明和李小龙", "", simplifiedchinese.GB18030},
		{"姓名是王小明和李小龙", "text/plain; charset=hz-gb-2312", simplifiedchinese.HZGB2312},
		{"Name;Müller", "application/octet-stream", little},
		{"name;mail", "", little}, {"name;mail", "text/csv", big}, {"name;mail", "text/csv; charset=utf-16", little},
		{"姓名是王小明\n", "text/csv; charset=utf-16le", little}, {"姓名是王小明和李小龙\n", "", big},
		{"Name;Müller", "", xunicode.UTF16(xunicode.BigEndian, xunicode.UseBOM)},
		{"Müller", "", utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)},
		{"Müller", "text/plain; charset=utf-8", encoding.Nop},
		{"Müller", "text/plain; charset=utf-16", encoding.Nop}, // the declaration is wrong: it is UTF-8
		{"Mueller", "text/plain; charset=utf-16le", encoding.Nop},
		{"Mueller", "text/plain; charset=made-up", encoding.Nop},
		{`<?xml version="1.0" encoding="iso-8859-2"?><a>Świątek</a>`, "application/xml", charmap.ISO8859_2},
		{`<html><head><meta http-equiv="Content-Type" content="text/html; charset=koi8-r"></head>Петрова`, "text/html", charmap.KOI8R},
	} {
		data := encoded(t, c.e, c.text+" hanne@corp.example")
		hidden, _, err := hideBytes(c.mime, data, hideMail)
		if got := strings.TrimPrefix(string(hidden), "\ufeff"); got != c.text+" [EMAIL_1]" || err != nil {
			t.Errorf("%q as %v, %s: %q, %v", c.text, c.e, c.mime, got, err)
		}
	}
}

// TestDamagedText checks that personal data is hidden in a text that has some bytes that do not fit its encoding.
func TestDamagedText(t *testing.T) {
	utf16 := encoded(t, xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM), "Müller hanne@corp.example")
	for _, c := range []struct{ data, mime, want string }{
		{"Müller, Größe, \xff hanne@corp.example", "", "Müller, Größe, \ufffd [EMAIL_1]"},
		{"ordinary \xfc hanne@corp.example", "text/plain; charset=utf-8", "ordinary \ufffd [EMAIL_1]"},
		{"ordinary \xfc hanne@corp.example", "text/plain", "ordinary ü [EMAIL_1]"},
		{string(utf16) + "x", "", "Müller [EMAIL_1]\ufffd"},
		{string(utf16) + "\x00\xd8", "text/csv; charset=utf-16le", "Müller [EMAIL_1]\ufffd"},
		{"+AGgA7A- hanne+AEA-corp.example 1 +- 1", "text/plain; charset=utf-7", "hì [EMAIL_1] 1 + 1"},
		{"hanne@corp.example", "text/plain; charset=utf-7", "[EMAIL_1]"},
		{"hanne@example 1+1=2", "text/plain; charset=utf-7", "hanne@example 1+1=2"}, // nothing is hidden
		{"Müller, Größe, \xff", "", "Müller, Größe, \xff"},
	} {
		hidden, _, err := hideBytes(c.mime, []byte(c.data), hideMail)
		if string(hidden) != c.want || err != nil {
			t.Errorf("%q, %s: %q, %v", c.data, c.mime, hidden, err)
		}
	}
}

// TestNoText checks that binary data is passed on unchanged, but is refused if the MIME type says that it is text.
func TestNoText(t *testing.T) {
	picture := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe\x00 hanne@corp.example"
	for _, mime := range []string{"image/png", "", "application/octet-stream", "application/pdf"} {
		if hidden, _, err := hideBytes(mime, []byte(picture), hideMail); string(hidden) != picture || err != nil {
			t.Errorf("%s: %q %v", mime, hidden, err)
		}
	}
	for _, mime := range []string{"text/csv", "application/json", "text/html; charset=x", "image/svg+xml"} {
		if _, _, err := hideBytes(mime, []byte(picture), hideMail); err == nil || !strings.Contains(err.Error(), "its encoding is not known") {
			t.Errorf("%s: %v", mime, err)
		}
	}
	if _, _, err := hideBytes("text/plain; charset=made-up", []byte("M\xfcller"), hideMail); err == nil {
		t.Error("text in an unknown encoding is not withheld")
	}
}

// TestPassedThroughBlobs checks that personal data is hidden in the Base64 of an MCP result that a client gets
// directly. The decoded bytes must keep their encoding.
func TestPassedThroughBlobs(t *testing.T) {
	little := xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM)
	blob := func(data []byte, mime string) string {
		return `{"contents":[{"uri":"u:1","blob":"` + base64.StdEncoding.EncodeToString(data) + `","mimeType":"` + mime + `"}]}`
	}
	for _, c := range []struct {
		mime string
		e    encoding.Encoding
	}{{"text/csv; charset=utf-16le", little}, {"", little}, {"text/csv; charset=windows-1252", charmap.Windows1252}, {"text/csv", encoding.Nop}} {
		document := blob(encoded(t, c.e, "Müller hanne@corp.example"), c.mime)
		want := blob(encoded(t, c.e, "Müller [EMAIL_1]"), c.mime)
		if got, err := HideAround(json.RawMessage(document), hideMail); string(got) != want || err != nil {
			t.Errorf("%s: %s, %v", c.mime, got, err)
		}
	}
	if _, err := HideAround(json.RawMessage(blob([]byte("\x00\x01\x02\xff"), "text/csv")), hideMail); err == nil {
		t.Error("text in an unknown encoding is not withheld")
	}
}

// openLarge returns data as openText reads it. isText is false if openText says that the data is not text.
func openLarge(t *testing.T, mime string, data []byte) (text string, isText bool, err error) {
	t.Helper()
	open := func() io.Reader { return bytes.NewReader(data) }
	survey, err := surveyBytes(open())
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&largeAnswer{ctx: context.Background()}).openText(open, mime, survey)
	if r == nil || err != nil {
		return "", false, err
	}
	all, err := io.ReadAll(r)
	return string(all), true, err
}

// TestLargeBlobs checks that personal data is hidden in data that is too large for memory, in any encoding.
func TestLargeBlobs(t *testing.T) {
	for _, c := range []struct {
		mime string
		e    encoding.Encoding
	}{
		{"text/csv", xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM)}, {"", xunicode.UTF16(xunicode.BigEndian, xunicode.UseBOM)},
		{"text/csv; charset=windows-1252", charmap.Windows1252}, {"", charmap.Windows1252}, {"text/csv", encoding.Nop},
	} {
		data := encoded(t, c.e, strings.Repeat("Müller;hanne@corp.example\n", 10_000))
		if text, _, err := openLarge(t, c.mime, data); err != nil || strings.Count(text, "Müller;hanne@corp.example\n") != 10_000 {
			t.Errorf("%s: %v", c.mime, err)
		}
	}
}

// TestLargeBeginnings checks data that is too large for memory and begins with ASCII. Text in another encoding is read.
// Binary data is not changed, but it is refused if the MIME type says that it is text.
func TestLargeBeginnings(t *testing.T) {
	ascii, archive := strings.Repeat("name;mail\n", 10_000), strings.Repeat("a name\x00", 20_000)
	for _, c := range []struct{ mime, data, want string }{
		{"", ascii + "M\xfcller, Gr\xf6\xdfe\n", "Müller, Größe\n"},
		{"text/csv", ascii + "M\xfcller\n" + ascii, "Müller\n" + ascii},
		{"text/csv", ascii + string(encoded(t, japanese.ShiftJIS, strings.Repeat("名前は山田太郎です\n", 10_000))), strings.Repeat("名前は山田太郎です\n", 10_000)},
		{"text/csv", ascii + "Müller, Größe, \xff\n", "Müller, Größe, \xff\n"},
		{"", ascii + "Müller\n", "Müller\n"},
		{"", archive, archive},
		{"", archive + "\xff\xfe", "bytes"}, {"application/x-tar", archive + "M\xfcller", "bytes"}, {"", ascii + "\x00\x01\xff", "bytes"},
		{"image/png", ascii + "\xff", "bytes"}, {"text/csv", archive + "M\xfcller", "withheld"}, {"text/csv", ascii + "\x00\xff", "withheld"},
		{"", "Müller" + archive + "\xff", "bytes"},
	} {
		text, isText, err := openLarge(t, c.mime, []byte(c.data))
		got := strings.TrimPrefix(text, ascii)
		switch {
		case err != nil:
			got = "withheld"
		case !isText:
			got = "bytes"
		}
		if got != c.want {
			t.Errorf("%s, …%.20q: %.80q", c.mime, strings.TrimPrefix(c.data, ascii), got)
		}
	}
}
