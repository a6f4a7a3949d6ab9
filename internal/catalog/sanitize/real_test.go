package sanitize

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// realTexts returns the texts of real servers and their tools, from the test data and from the folder in
// RETORT_CATALOGS, by server and tool.
func realTexts(t testing.TB) map[string][]string {
	files, _ := filepath.Glob("../../pipeline/bindings/testdata/catalog/*.json")
	if folder := os.Getenv("RETORT_CATALOGS"); folder != "" {
		more, _ := filepath.Glob(filepath.Join(folder, "*.json"))
		files = append(files, more...)
	}
	if len(files) == 0 {
		t.Fatal("there are no catalogues")
	}
	all := map[string][]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Name, Instructions string
			Tools              []json.RawMessage
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		c.Name = filepath.Base(file)
		all[c.Name] = append(all[c.Name], c.Instructions)
		for _, raw := range c.Tools {
			var tool map[string]any
			_ = json.Unmarshal(raw, &tool)
			delete(tool, "icons")
			all[c.Name+"."+tool["name"].(string)] = stringsOf(tool)
		}
	}
	return all
}

func stringsOf(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			all = append(all, stringsOf(item)...)
		}
	case map[string]any:
		for key, item := range v {
			all = append(append(all, key), stringsOf(item)...)
		}
	}
	return all
}

// TestRealTools checks that the texts of real tools have no findings apart from links.
func TestRealTools(t *testing.T) {
	s, flagged, linked := New(), 0, 0
	all := realTexts(t)
	for name, texts := range all {
		for _, text := range texts {
			for _, f := range s.Scan(text) {
				if f.Rule == linkRule.ID { // which Clean writes as text
					linked++
					cleaned, _ := s.CleanText(text)
					t.Logf("%s: %q becomes %q", name, text[f.Start:f.End], cleaned)
					continue
				}
				flagged++
				t.Errorf("%s: %s: %q", name, f.Rule, text[f.Start:min(f.End, f.Start+300)])
			}
		}
	}
	t.Logf("%d tools and servers, %d findings, %d links", len(all), flagged, linked)
}

func BenchmarkRealTools(b *testing.B) {
	s, all, size := New(), realTexts(b), 0
	for _, texts := range all {
		for _, text := range texts {
			size += len(text)
		}
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, texts := range all {
			for _, text := range texts {
				s.Scan(text)
			}
		}
	}
	b.ReportMetric(float64(len(all)), "tools/op")
}
