package config

import (
	"regexp"
	"slices"
	"time"
)

func (p *PII) reader() settingReader {
	mode := func(m *PIIMode) settingReader { return readOneOf(m, PIISealed, PIIBorder, PIIOff) }
	words := func(w *[]string) settingReader { return readList(w, readPIIWord) }
	return readObject(
		fieldReader{"modes", "For each type: sealed hides values from programs and the model, border only from the model, off from nobody.", readMap(&p.Modes, checkPIITypeKey, mode)},
		fieldReader{"regions", "Countries whose numbers are recognised, as ISO 3166 codes.", readList(&p.Regions, func(s *string) settingReader {
			return readMatching(s, "a country's two capital letters, such as US", `^[A-Z]{2}$`)
		})},
		fieldReader{"restoreToModel", "Allow the tool restore_pii to return the original personal data to the model. A person must approve it each time.", readSwitch(&p.RestoreToModel)},
		fieldReader{"showInForms", "Forms of clients may show real values, because only the user sees them.", readSwitch(&p.ShowInForms)},
		fieldReader{"words", "For each type: words and phrases that are always of this type.", readMap(&p.Words, checkPIITypeKey, words)},
		fieldReader{"keys", "For each name of a key in a result, in any spelling: the type of its values.", readMap(&p.Keys, func(*nodeReader, *valueNode) {}, readPIIType)},
		fieldReader{"types", "Further types of personal data.", readMap(&p.Types, checkNewPIIType, (*PIIType).reader)},
		fieldReader{"expiry", "Time after which the tokens of an unused session are removed.", readDuration(&p.Expiry, time.Hour, 10*365*24*time.Hour)},
		fieldReader{"key", "Where the encryption key is stored. The default is the system's keyring, or a file of the user.", readObject(
			fieldReader{"variable", "Environment variable that contains the key.", readText(&p.Key.Variable)},
			fieldReader{"age", "File with the key, encrypted with age.", readPath(&p.Key.Age)},
			fieldReader{"identity", "File with the age identity that decrypts the key.", readPath(&p.Key.Identity)},
		)},
	)
}

func readPIIWord(s *string) settingReader {
	return readChecked(s, "a word of four letters or more", func(w string) bool { return len(w) >= 4 && len(w) <= 200 })
}

func readPIIType(s *string) settingReader {
	return settingReader{
		read:   func(r *nodeReader, n *valueNode) { readOneOf(s, r.piiTypes...).read(r, n) },
		schema: matchingSchema("^[a-z]+(_[a-z]+)*$"),
		show:   func() any { return showText(*s) },
	}
}

// withPIITypes returns a reader of the settings that first collects the names of the types in pii.types and then
// reads the settings with whole. The names must be known first, because any part of the file may use them.
func withPIITypes(whole settingReader) settingReader {
	return whole.checkedBy(func(r *nodeReader, n *valueNode) {
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
		whole.read(r, n)
	})
}

// checkNewPIIType adds a problem for an invalid name of a type of personal data that the settings define. The name
// must be short and simple, because the placeholders for hidden values contain it in capitals, as in [EMAIL_1].
func checkNewPIIType(r *nodeReader, key *valueNode) {
	switch {
	case slices.Contains(piiTypes(), key.text):
		r.addProblem(key, "choose another name", "the type %q already exists", key.text)
	case len(key.text) > 20 || !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(key.text):
		r.addProblem(key, "use at most 20 lower-case letters, with _ between words, such as employee_id", "%q is not a valid name for a type", shortenText(key.text))
	}
}

func (t *PIIType) reader() settingReader {
	return readObject(
		fieldReader{"pattern", "Regular expression (RE2) for values of this type.", readChecked(&t.Pattern, "a regular expression (RE2) that does not match the empty text, such as 'EMP-[0-9]{6}'", isForm)},
		fieldReader{"words", "Words and phrases that are always of this type.", readList(&t.Words, readPIIWord)},
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
