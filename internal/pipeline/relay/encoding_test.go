package relay

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	xunicode "golang.org/x/text/encoding/unicode"
)

// TestDecodeText checks that text in each encoding is decoded, by its mark, its charset or its form, and that bytes
// which are no text are not taken for text.
func TestDecodeText(t *testing.T) {
	for _, c := range []struct {
		text, mime string
		e          encoding.Encoding
	}{
		{"Müller, Größe", "", charmap.Windows1252},
		{"Anna Петрова живёт здесь", "text/csv", charmap.Windows1251},
		{"Świątek", "text/plain; charset=windows-1250", charmap.Windows1250},
		{"名前は山田太郎です", "", japanese.ShiftJIS},
		{"姓名是王小明和李小龙", "", simplifiedchinese.GB18030},
		{"Name;Müller", "application/octet-stream", xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM)},
		{"Name;Müller", "", xunicode.UTF16(xunicode.BigEndian, xunicode.UseBOM)},
	} {
		data, err := c.e.NewEncoder().Bytes([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		text, isText, undecided := decodeText(c.mime, data)
		if got := strings.TrimPrefix(string(text), "\ufeff"); got != c.text || !isText || undecided {
			t.Errorf("%q as %v: %q, text %v, undecided %v", c.text, c.e, got, isText, undecided)
		}
	}
	picture := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe\x00")
	if _, isText, undecided := decodeText("image/png", picture); isText || undecided {
		t.Error("a picture counts as text")
	}
	if _, isText, undecided := decodeText("text/csv", picture); isText || !undecided {
		t.Error("bytes that are said to be text are not withheld")
	}
}
