package htmlpage

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	p := Page{Title: "Costs <b>", Lead: []string{"a & b"}, Sections: []PageSection{{
		Title: `one "two"`, Text: []string{"</p><script>alert(1)</script>"}, Unit: "tokens", Notes: []string{"<i>"},
		Bars:  []ChartBar{{"direct", []BarPart{{"definitions", 3000}, {"data", 1_000_000}}}, {"<code>", []BarPart{{"data", 10}}}, {"nothing", nil}},
		Table: PageTable{[]string{"way", "tokens"}, [][]string{{"<td>", "1"}}},
	}, {Title: "empty"}}}
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"<h1>Costs &lt;b&gt;</h1>", "&lt;script&gt;", ">1,003,000 tokens<", ">0 tokens<", `width="598.2"`, "<td>&lt;td&gt;</td><td>1</td>", "<li>&lt;i&gt;</li>"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "<script") || strings.Contains(text, "http:") || strings.Contains(text, "https:") {
		t.Errorf("something is loaded or run:\n%s", text)
	}
	body := text[strings.Index(text, "<body>"):]
	body = strings.TrimSuffix(strings.TrimSpace(body), "</html>")
	for d := xml.NewDecoder(strings.NewReader(body)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, body)
		}
	}
}

func TestNumber(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567.6: "1,234,568", -1234: "-1,234", -123: "-123"} {
		if got := FormatNumber(f); got != want {
			t.Errorf("%v is %s, not %s", f, got, want)
		}
	}
}
