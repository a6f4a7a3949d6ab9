package relay

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

// TestAround checks that personal data is hidden in texts and in base64 that contains text, and that base64 with
// binary data does not change.
func TestAround(t *testing.T) {
	hide := func(d []byte) ([]byte, error) {
		return bytes.ReplaceAll(d, []byte("ada@x.io"), []byte("[EMAIL_1]")), nil
	}
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	picture := b64("\x89PNG\x01\xff ada@x.io")
	for in, want := range map[string]string{
		`{"content":[{"type":"text","text":"ada@x.io"}],"n":9007199254740993}`:                                 `{"content":[{"type":"text","text":"[EMAIL_1]"}],"n":9007199254740993}`,
		`{"content":[{"data":"` + picture + `"},{"text":"ada@x.io"}]}`:                                         `{"content":[{"data":"` + picture + `"},{"text":"[EMAIL_1]"}]}`,
		`{"contents":[{"blob":"` + b64("mail ada@x.io") + `"},{"blob":"` + picture + `"}]}`:                    `{"contents":[{"blob":"` + b64("mail [EMAIL_1]") + `"},{"blob":"` + picture + `"}]}`,
		`{"content":[{"resource":{"blob":"` + picture + `"}},{"data":""},{"data":"ada@x.io"}]}`:                `{"content":[{"resource":{"blob":"` + picture + `"}},{"data":""},{"data":"[EMAIL_1]"}]}`,
		`{"structuredContent":{"data":"ada@x.io","content":[{"data":"` + picture + `"}]},"blob":"ada@x.io"}`:   `{"structuredContent":{"data":"[EMAIL_1]","content":[{"data":"` + picture + `"}]},"blob":"[EMAIL_1]"}`,
		`{"messages":[{"content":{"data":"` + picture + `"}},{"content":[{"data":"` + picture + `"}]}]}`:       `{"messages":[{"content":{"data":"` + picture + `"}},{"content":[{"data":"` + picture + `"}]}]}`,
		`{"content":[{"data":"\u0061da@x.io"},{"data":"` + strings.ReplaceAll(picture, "i", `\u0069`) + `"}]}`: `{"content":[{"data":"\u0061da@x.io"},{"data":"` + strings.ReplaceAll(picture, "i", `\u0069`) + `"}]}`,
	} {
		got, err := HideAround([]byte(in), hide)
		if err != nil || string(got) != want {
			t.Errorf("%s\n is %s %v\nwant %s", in, got, err, want)
		}
	}
	// A picture is not broken by what would be found in it.
	letters := func(d []byte) ([]byte, error) { return bytes.ReplaceAll(d, []byte("iVBOR"), []byte("[X]")), nil }
	if got, err := HideAround([]byte(`{"content":[{"data":"`+picture+`"}]}`), letters); err != nil || !strings.Contains(string(got), picture) {
		t.Error(string(got), err)
	}
	// Who hides the way to the bytes loses them, and tells.
	gone := func(d []byte) ([]byte, error) { return bytes.ReplaceAll(d, []byte(`"data"`), []byte(`"[X]"`)), nil }
	if got, err := HideAround([]byte(`{"content":[{"data":"`+picture+`"}]}`), gone); err == nil {
		t.Error(string(got))
	}
}

// TestDeepResults checks that a deeply nested result does not cause a stack overflow.
func TestDeepResults(t *testing.T) {
	const depth = 2_000_000
	picture := base64.StdEncoding.EncodeToString([]byte("\x89PNG\x01\xff ada@x.io"))
	in := `{"data":` + strings.Repeat("[", depth) + `"ada@x.io"` + strings.Repeat("]", depth) + `,"content":[{"data":"` + picture + `"}]}`
	got, err := HideAround([]byte(in), func(d []byte) ([]byte, error) {
		return bytes.ReplaceAll(d, []byte("ada@x.io"), []byte("[EMAIL_1]")), nil
	})
	if err != nil || string(got) != strings.Replace(in, "ada@x.io", "[EMAIL_1]", 1) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func FuzzAround(f *testing.F) {
	f.Add(`{"content":[{"data":"iVBORw=="},{"resource":{"blob":"YQ=="}}]}`)
	f.Add(`{"content":[{"data":"YWRh"`)
	f.Fuzz(func(t *testing.T, text string) {
		same, err := HideAround([]byte(text), func(d []byte) ([]byte, error) { return d, nil })
		if err == nil && string(same) != text && strings.Count(text, "=") == strings.Count(string(same), "=") && len(same) != len(text) {
			t.Errorf("%q became %q", text, same)
		}
	})
}
