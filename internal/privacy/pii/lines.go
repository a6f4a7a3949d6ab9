package pii

import "bytes"

// labelledLine represents a line with a label, such as "E-Mail: x" or "- **Phone:** x".
type labelledLine struct {
	valueMeaning
	start, end int // of the value
}

// findLabels returns the lines of a text whose labels name a type of personal data. An ambiguous label such as "name"
// counts as sure only if another line is about a person.
func (w *documentWalker) findLabels(text []byte) (found []labelledLine) {
	people, street := false, false
	for i := 0; i < len(text); {
		end := lineEnd(text, i)
		if key, value := keyOfLine(text[i:end]); value > 0 {
			m := w.lineMeaning(text[i+key : i+value])
			if m.typ != "" {
				start := blanksEnd(text, i+value, 4)
				for start < end && (text[start] == ':' || text[start] == '*' || text[start] == ' ') {
					start++
				}
				found = append(found, labelledLine{m, start, end})
				people = people || m.isPersonal()
				street = street || m.typ == Address && !m.zip
			}
		}
		i = end + 1
	}
	for i := range found {
		if l := &found[i]; l.name && people || l.zip && street {
			l.sure = true
		}
	}
	return found
}

// keyOfLine returns the offsets of a line's label and of the colon after it. value is 0 if the line has no label
// followed by a colon.
func keyOfLine(line []byte) (key, value int) {
	for key < len(line) && key < 12 && bytes.IndexByte([]byte(" \t-*#>•|"), line[key]) >= 0 {
		key++
	}
	for i := key; i < len(line) && i < key+40; i++ {
		switch b := line[i]; {
		case b == ':':
			if i < key+2 || i+1 < len(line) && line[i+1] == '/' {
				return 0, 0
			}
			return key, i
		case class[b]&(isUpper|isLower|isHigh|isDigit) == 0 && b != ' ' && b != '-' && b != '_' && b != '*' && b != '.' && b != 0xC2:
			return 0, 0
		}
	}
	return 0, 0
}

// isSourceCode reports whether the value of a labelled line looks like source code.
func isSourceCode(v []byte) bool {
	switch v[len(v)-1] {
	case ',', ';', '{', '(', '[', '`':
		return true
	}
	return v[0] == '"' || v[0] == '\'' || v[0] == '`' || bytes.IndexByte(v, '(') >= 0 && bytes.IndexByte(v, '.') >= 0
}

// lineMeaning returns what a line's label means. It caches the result, because many lines have the same label.
func (w *documentWalker) lineMeaning(key []byte) valueMeaning {
	key = bytes.Trim(key, " *_")
	if m, ok := w.lineKeys[string(key)]; ok {
		return m
	}
	m := valueMeaning{}
	if words := bytes.Count(key, []byte(" ")); words < 5 {
		m = w.s.meaningOf(string(key))
	}
	if len(w.lineKeys) > 1<<10 || w.lineKeys == nil {
		w.lineKeys = map[string]valueMeaning{}
	}
	w.lineKeys[string(key)] = m
	return m
}

// walkLines scans a text in which some lines have labels. The label of a line determines the type of its value. All
// other text is scanned as free text.
func (w *documentWalker) walkLines(v textView) {
	from := 0
	for _, l := range w.findLabels(v.text) {
		if w.s.off[l.typ] || (l.name || l.zip) && !l.sure {
			continue
		}
		start, end := w.s.matchWhole(l.typ, v.text[l.start:l.end], l.sure)
		if end == 0 || isSourceCode(v.text[l.start+start:l.start+end]) || l.typ == Secret || l.typ == Email {
			continue // the scanner sees these better
		}
		w.scanText(v.subView(from, l.start), textHints{})
		w.addClaim(v, l.start+start, l.start+end, l.typ)
		if l.typ == Name || l.typ == Company {
			w.learnName(l.typ, v.text[l.start+start:l.start+end])
		}
		from = l.start + end
	}
	w.scanText(v.subView(from, len(v.text)), textHints{})
}
