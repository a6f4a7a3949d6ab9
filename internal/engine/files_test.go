package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/engine"
)

func kindOf(err error) core.Kind {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// TestWorkspaceFiles checks that programs in both languages can read the files that a model writes, and that the
// model can read the files that programs write.
func TestWorkspaceFiles(t *testing.T) {
	e := withPerson(t)
	if w, err := e.WriteFile("", "./workspace/in/a.csv", "a,b\n", "", false); err != nil || w != (engine.FileWritten{Path: "in/a.csv", Bytes: 4}) {
		t.Fatalf("%+v %v", w, err)
	}
	if w, err := e.WriteFile("", "in/a.csv", base64.StdEncoding.EncodeToString([]byte("1,2\n")), "base64", true); err != nil || w.Bytes != 8 {
		t.Fatalf("%+v %v", w, err)
	}
	o := e.Execute(t.Context(), engine.Request{Code: `import fs from 'node:fs/promises'; const text = await fs.readFile('workspace/in/a.csv', 'utf8'); await fs.writeFile('out.txt', text.toUpperCase()); return text`})
	if string(o.Result) != `"a,b\n1,2\n"` {
		t.Errorf("%s %v", o.Result, o.Error)
	}
	if part, err := e.ReadFile("", "out.txt", 0, 0, ""); err != nil || part.Content != "A,B\n1,2\n" || part.NextOffset != 0 {
		t.Errorf("%+v %v", part, err)
	}
	if list, err := e.ListFiles("", "", "*.csv"); err != nil || len(list.Files) != 1 || list.Files[0].Path != "in/a.csv" || list.Files[0].Bytes != 8 {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := e.ReadFile("other", "out.txt", 0, 0, ""); err == nil {
		t.Error("another session has it too")
	}
	if told, _ := json.Marshal(e.Stats(t.Context(), "")); !strings.Contains(string(told), `"kept":{"files":2,"bytes":16,"state":0}`) {
		t.Errorf("%s", told)
	}
	for _, name := range []string{"../x", "/etc/passwd", "servers/x.ts", "workspace/../../x"} {
		if _, err := e.ReadFile("", name, 0, 0, ""); err == nil || !strings.Contains(err.Error(), "EACCES") {
			t.Errorf("read %s: %v", name, err)
		}
		if _, err := e.WriteFile("", name, "x", "", false); err == nil {
			t.Errorf("wrote %s", name)
		}
	}
	for _, bad := range []func() error{
		func() error { _, err := e.WriteFile("", "a", "!", "base64", false); return err },
		func() error { _, err := e.WriteFile("", "a", "x", "latin1", false); return err },
		func() error { _, err := e.ReadFile("", "out.txt", 0, 0, "latin1"); return err },
		func() error { _, err := e.ReadFile("", "out.txt", -1, 0, ""); return err },
	} {
		if err := bad(); kindOf(err) != core.KindInvalidArguments {
			t.Errorf("%v", err)
		}
	}
}

// TestReadingHides checks that a model sees no personal value of a file, even if the model reads the file byte by
// byte.
func TestReadingHides(t *testing.T) {
	e := withPerson(t)
	o := e.Execute(t.Context(), engine.Request{Code: `import fs from 'node:fs/promises'; const p = await hr.getPerson({id: 1});
		await fs.writeFile('p.txt', 'für ' + p.full_name + ', ' + p.email + ' – ende'); await fs.writeFile(p.full_name + '.txt', 'x'); return 1`})
	if o.Status != core.StatusOK {
		t.Fatalf("%+v", o.Error)
	}
	const want = "für [NAME_1], [EMAIL_1] – ende"
	for _, limit := range []int64{4, 5, 7, 100} {
		var all strings.Builder
		offset := int64(0)
		for range 100 {
			part, err := e.ReadFile("", "p.txt", offset, limit, "")
			if err != nil || part.Bytes != int64(len(want)) || !utf8.ValidString(part.Content) {
				t.Fatalf("%+v %v", part, err)
			}
			all.WriteString(part.Content)
			if offset = part.NextOffset; offset == 0 {
				break
			}
		}
		if all.String() != want {
			t.Errorf("%d bytes at a time: %q", limit, all.String())
		}
	}
	part, err := e.ReadFile("", "p.txt", 0, 0, "base64")
	if plain, _ := base64.StdEncoding.DecodeString(part.Content); string(plain) != want || err != nil {
		t.Errorf("%s %v", plain, err)
	}
	list, err := e.ListFiles("", "", "")
	if told, _ := json.Marshal(list); err != nil || strings.Contains(string(told), "Wacht") || !strings.Contains(string(told), "[NAME_1].txt") {
		t.Errorf("%s %v", told, err)
	}
	// What cannot be looked through is not shown, but for images.
	png := "\x89PNG\r\n\x1a\n\x00\xff"
	for name, data := range map[string]string{"a.bin": "\xff\xfe\x00A\x00n\x00n", "a.png": png} {
		if _, err := e.WriteFile("", name, base64.StdEncoding.EncodeToString([]byte(data)), "base64", false); err != nil {
			t.Fatal(err)
		}
	}
	for _, encoding := range []string{"", "base64"} {
		if part, err := e.ReadFile("", "a.bin", 0, 0, encoding); kindOf(err) != core.KindPolicy {
			t.Errorf("%q: %+v %v", encoding, part, err)
		}
	}
	if image, err := e.ReadFile("", "a.png", 0, 0, ""); err != nil || image.MIMEType != "image/png" || string(image.Image) != png {
		t.Errorf("%+v %v", image, err)
	}
}
