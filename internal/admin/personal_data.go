package admin

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"

	"retort/internal/base/seal"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/privacy/pii"
	"retort/internal/privacy/redact"
)

// PersonalValue is a value of a text that Retort would hide, with the reason why.
type PersonalValue struct {
	Line     int             `json:"line"`
	Column   int             `json:"column"` // in characters; the first is 1
	Type     pii.Type        `json:"type"`
	Mode     redact.HideMode `json:"mode"`
	Value    string          `json:"value"`
	Reason   pii.FoundReason `json:"reason"`
	Evidence string          `json:"evidence,omitempty"` // the key, words or pattern that the reason refers to
}

// FindPersonalData returns the personal data in a text, in order, as the settings of a configuration define it. It
// includes values of types with the mode "off". The text must be UTF-8.
func FindPersonalData(c engine.Config, file string, text []byte) ([]PersonalValue, error) {
	s, err := openStores(c)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, core.Errorf(core.KindInvalidArguments, "pii.test", "%s is not text in UTF-8", file).
			WithHint("convert the file, for example with iconv -t UTF-8")
	}
	o := engine.RedactOptions(s.LoadedConfig().Settings)
	all := []PersonalValue{}
	line, first := 1, 0 // number of the line, and where it begins
	for _, v := range pii.Explain(o.ScanOptions(), text) {
		if n := bytes.Count(text[first:v.Start], []byte{'\n'}); n > 0 {
			line += n
			first = bytes.LastIndexByte(text[:v.Start], '\n') + 1
		}
		all = append(all, PersonalValue{
			line, utf8.RuneCount(text[first:v.Start]) + 1, v.Type, o.ModeOf(v.Type), v.Text, v.Reason, v.Evidence,
		})
	}
	return all, nil
}

// maxSettingsFile bounds the size of a file of settings that LearnPersonalWords changes.
const maxSettingsFile = 1 << 20

// LearnPersonalWords adds words to the setting pii.words.TYPE in a retort.yaml, which it creates if it does not exist.
// It returns the words that the file did not contain before.
func LearnPersonalWords(file string, t pii.Type, words []string) (added []string, err error) {
	text, err := seal.ReadFile(file, maxSettingsFile)
	if err != nil && !os.IsNotExist(err) {
		return nil, core.Errorf(core.KindInvalidArguments, "pii.learn", "%s cannot be read: %w", file, err)
	}
	changed, added, err := config.AddPIIWords(file, text, os.LookupEnv, string(t), words)
	if err != nil || len(added) == 0 {
		return nil, err
	}
	mode := fs.FileMode(0o600)
	if found, err := os.Stat(file); err == nil {
		mode = found.Mode().Perm()
	}
	err = seal.ReplaceWith(file, seal.ReplaceOptions{Mode: mode}, func(w io.Writer) error {
		_, err := w.Write(changed)
		return err
	})
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "pii.learn", "%s cannot be written: %w", file, err)
	}
	return added, nil
}
