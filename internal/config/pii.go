package config

import (
	"regexp"
	"slices"
	"time"
)

func (p *PII) readFunc() readFunc {
	return readObject(
		fieldReader{"modes", readMap(&p.Modes, checkPIITypeKey, func(m *PIIMode) readFunc { return readOneOf(m, PIISealed, PIIBorder, PIIOff) })},
		fieldReader{"regions", readList(&p.Regions, func(s *string) readFunc {
			return readChecked(s, "a country's two capital letters, such as US", regexp.MustCompile(`^[A-Z]{2}$`).MatchString)
		})},
		fieldReader{"restoreToModel", readSwitch(&p.RestoreToModel)},
		fieldReader{"showInForms", readSwitch(&p.ShowInForms)},
		fieldReader{"words", readMap(&p.Words, checkPIITypeKey, func(w *[]string) readFunc { return readList(w, readPIIWord) })},
		fieldReader{"keys", readMap(&p.Keys, func(*nodeReader, *valueNode) {}, readPIIType)},
		fieldReader{"types", readMap(&p.Types, checkNewPIIType, (*PIIType).readFunc)},
		fieldReader{"expiry", readDuration(&p.Expiry, time.Hour, 10*365*24*time.Hour)},
		fieldReader{
			"key",
			readObject(fieldReader{"variable", readText(&p.Key.Variable)}, fieldReader{"age", readPath(&p.Key.Age)}, fieldReader{"identity", readPath(&p.Key.Identity)}),
		},
	)
}

func readPIIWord(s *string) readFunc {
	return readChecked(s, "a word of four letters or more", func(w string) bool { return len(w) >= 4 && len(w) <= 200 })
}

func readPIIType(s *string) readFunc {
	return func(r *nodeReader, n *valueNode) { readOneOf(s, r.piiTypes...)(r, n) }
}

// withPIITypes returns a reader of the settings that first collects the names of the types in pii.types and then
// calls read. The names must be known first, because any part of the file may use them.
func withPIITypes(read readFunc) readFunc {
	return func(r *nodeReader, n *valueNode) {
		r.piiTypes = piiTypes()
		if section := n.findEntry("pii"); section != nil {
			if types := section.value.findEntry("types"); types != nil {
				for _, e := range types.value.entries {
					if !slices.Contains(r.piiTypes, e.key.text) {
						r.piiTypes = append(r.piiTypes, e.key.text)
					}
				}
			}
		}
		read(r, n)
	}
}

// checkNewPIIType checks the name of a further type of personal data. Tokens contain the name in capitals.
func checkNewPIIType(r *nodeReader, key *valueNode) {
	switch {
	case slices.Contains(piiTypes(), key.text):
		r.addProblem(key, "choose another name", "the type %q already exists", key.text)
	case len(key.text) > 20 || !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(key.text):
		r.addProblem(key, "use at most 20 lower-case letters, with _ between words, such as employee_id", "%q is not a valid name for a type", shortenText(key.text))
	}
}

func (t *PIIType) readFunc() readFunc {
	return readObject(
		fieldReader{"pattern", readChecked(&t.Pattern, "a regular expression (RE2) that does not match the empty text, such as 'EMP-[0-9]{6}'", isForm)},
		fieldReader{"words", readList(&t.Words, readPIIWord)},
	)
}

func isForm(s string) bool {
	form, err := regexp.Compile(s)
	return err == nil && len(s) <= 1000 && !form.MatchString("")
}

func checkPIITypeKey(r *nodeReader, key *valueNode) {
	if types := r.piiTypes; !slices.Contains(types, key.text) {
		r.addProblem(key, suggestName(key.text, types), "unknown type of personal data %q", shortenText(key.text))
	}
}
