package pii

import "strings"

// Streets in free text: 42 Elm Street, Lindenstraße 7, 12 rue de Rivoli, Calle
// Mayor 5. Towns and codes behind them are left, since nothing tells where they end.

// These words mark street addresses. streetBefore lists words that follow a house number and a name (42 Elm Street).
// streetAfter lists words that precede a name and a number (Calle Mayor 5). streetFrench lists words between the
// number and the name (12 rue de Rivoli). streetEnds lists the endings of compound street names (Lindenstraße).
var (
	streetBefore = []string{
		"Street", "St", "Avenue", "Ave", "Road", "Rd", "Lane", "Ln", "Drive", "Dr", "Boulevard", "Blvd", "Court", "Ct",
		"Terrace", "Square", "Parkway", "Pkwy", "Highway", "Crescent", "Close",
	}
	streetAfter  = []string{"Calle", "Avenida", "Avda", "Paseo", "Plaza", "Via", "Viale", "Piazza", "Corso", "Rua", "Travessa", "ulica", "ul"}
	streetFrench = []string{"rue", "avenue", "boulevard", "chemin", "allée", "impasse", "quai", "place"}
	streetEnds   = []string{
		"straße", "strasse", "gasse", "allee", "platz", "weg", "damm", "ufer", "straat", "laan", "gracht", "plein",
		"gata", "gatan", "gate", "veien", "vägen", "vej", "katu",
	}
)

// findStreet finds a street address that contains the word w. It returns the offset at which the scan continues, or 0
// if w belongs to no address.
func (sc *textScan) findStreet(w textWord) int {
	text := sc.text
	s := string(text[w.start:w.end])
	switch {
	case isOneOf(s, streetBefore...):
		return sc.numberedStreet(w)
	case isOneOf(s, streetFrench...):
		if p, ok := sc.wordBefore(2); ok && p.sort&isLetter == 0 && p.end-p.start <= 4 &&
			(w.start == p.end+1 || w.start == p.end+2 && text[p.end] == ',') {
			if end := streetName(text, w.end, 5); end > 0 {
				return sc.addFinding(p.start, end, Address)
			}
		}
	case isOneOf(s, streetAfter...):
		if end := streetName(text, skipByte(text, w.end, '.'), 4); end > 0 {
			i := blanksEnd(text, skipByte(text, end, ','), 1)
			if e := houseNumber(text, i); e > 0 {
				return sc.addFinding(w.start, e, Address)
			}
		}
	}
	return 0
}

// numberedStreet finds a street address that ends in the street word w, such as 42 Elm Street. It returns the offset
// at which the scan continues, or 0.
func (sc *textScan) numberedStreet(w textWord) int {
	from := w.start
	for back := 2; back <= 5; back++ {
		p, ok := sc.wordBefore(back)
		if !ok || p.start < sc.done || p.end+1 != from || sc.text[p.end] != ' ' {
			return 0
		}
		if p.sort&isDigit != 0 {
			if back == 2 || p.sort&isLetter != 0 || p.end-p.start > 5 || !canBegin(sc.text, p.start) {
				return 0
			}
			return sc.addFinding(p.start, w.end, Address)
		}
		if !isCapitalised(sc.text, p.start) {
			return 0
		}
		from = p.start
	}
	return 0
}

// streetName returns the end of the street name that follows offset i, or 0 if none is found. The name may have at
// most the given number of words. All its words except short particles must be capitalised.
func streetName(text []byte, i, most int) (end int) {
	for n := 0; n < most && byteAt(text, i) == ' '; n++ {
		e := spanEnd(text, i+1, isLetter)
		if e == i+1 {
			return end
		}
		if isCapitalised(text, i+1) {
			end = e
		} else if e-i > 4 {
			return end
		}
		i = e
		if byteAt(text, i) == '\'' || byteAt(text, i) == '-' {
			i = spanEnd(text, i+1, isLetter)
			end = i
		}
	}
	return end
}

// houseNumber returns the end of a house number at i (12, 12a or 12-14), or 0.
func houseNumber(text []byte, i int) int {
	e := spanEnd(text, i, isDigit)
	if e == i || e-i > 4 {
		return 0
	}
	if byteAt(text, e) == '-' && isDigitByte(byteAt(text, e+1)) {
		e = spanEnd(text, e+1, isDigit)
	} else if class[byteAt(text, e)]&isLetter != 0 && !isAlnumByte(byteAt(text, e+1)) {
		e++
	}
	if isAlnumByte(byteAt(text, e)) || byteAt(text, e) == '.' && isDigitByte(byteAt(text, e+1)) || byteAt(text, e) == ':' {
		return 0
	}
	return e
}

// endsInStreet finds addresses such as Lindenstraße 7: a capitalised word with a street ending, followed by a number.
func (sc *textScan) endsInStreet(w textWord) int {
	s := foldCase(string(sc.text[w.start:w.end]))
	for _, suffix := range streetEnds {
		if strings.HasSuffix(s, suffix) && len(s) > len(suffix)+2 {
			if e := houseNumber(sc.text, w.end+1); e > 0 {
				return sc.addFinding(w.start, e, Address)
			}
		}
	}
	return 0
}
