package pii

import "strings"

// months in lower case, of several languages, by number.
var months = strings.Fields(`january:1 february:2 march:3 april:4 may:5 june:6 july:7 august:8 september:9 october:10 november:11 december:12
	jan:1 feb:2 mar:3 apr:4 jun:6 jul:7 aug:8 sep:9 sept:9 oct:10 nov:11 dec:12
	januar:1 februar:2 märz:3 mai:5 juni:6 juli:7 oktober:10 dezember:12 okt:10 dez:12 mär:3
	janvier:1 février:2 mars:3 avril:4 juin:6 juillet:7 août:8 septembre:9 octobre:10 novembre:11 décembre:12
	enero:1 febrero:2 marzo:3 abril:4 mayo:5 junio:6 julio:7 agosto:8 septiembre:9 octubre:10 noviembre:11 diciembre:12
	gennaio:1 febbraio:2 aprile:4 maggio:5 giugno:6 luglio:7 settembre:9 ottobre:10 dicembre:12
	janeiro:1 fevereiro:2 março:3 maio:5 junho:6 julho:7 setembro:9 outubro:10 novembro:11 dezembro:12
	januari:1 februari:2 maart:3 mei:5 augustus:8 augusti:8 maj:5 marts:3 desember:12 
	stycznia:1 lutego:2 marca:3 kwietnia:4 maja:5 czerwca:6 lipca:7 sierpnia:8 września:9 października:10 listopada:11 grudnia:12`)

// dateAt is the end of a date at i, 0 if there is none: in digits, or with the
// name of a month.
func dateAt(text []byte, i int) int {
	if digit(at(text, i)) {
		var g groups
		g.read(text, i, i)
		if g.n >= 3 && g.sep[1] == g.sep[2] && g.birthLike() {
			if end := g.end[2]; !alnum(at(text, end)) || at(text, end) == 'T' {
				return end
			}
		}
		if g.n >= 1 && g.len[0] <= 2 { // 4 July 1976, 4. Juli 1976, 4 de julio de 1976
			j := blanks(text, skip(text, g.end[0], '.'), 1)
			for _, ordinal := range []string{"st", "nd", "rd", "th", "er", "º"} {
				if g.end[0]+len(ordinal) < len(text) && string(text[g.end[0]:g.end[0]+len(ordinal)]) == ordinal {
					j = blanks(text, g.end[0]+len(ordinal), 1)
				}
			}
			j = blanks(text, joint(text, j), 1)
			if m := month(text, j); m > j {
				m = blanks(text, skip(text, skip(text, m, '.'), ','), 1)
				return yearAt(text, blanks(text, joint(text, m), 1))
			}
		}
		return 0
	}
	m := month(text, i) // July 4, 1976
	if m == i {
		return 0
	}
	j := blanks(text, skip(text, m, '.'), 1)
	end := span(text, j, isDigit)
	if end == j || end-j > 2 {
		return 0
	}
	if s := span(text, end, isLower); s-end == 2 {
		end = s
	}
	return yearAt(text, blanks(text, skip(text, end, ','), 1))
}

// birthLike says whether three runs are year, month and day in some order.
func (g *groups) birthLike() bool {
	d := g.digits[:]
	a, b := int(g.len[0]), int(g.len[1])
	switch c := int(g.len[2]); {
	case a == 4 && b <= 2 && c <= 2:
		return year(number(d[:4])) && date(number(d[4:4+b]), number(d[4+b:4+b+c]))
	case a <= 2 && b <= 2 && (c == 4 || c == 2):
		x, y := number(d[:a]), number(d[a:a+b])
		return (date(x, y) || date(y, x)) && (c == 2 || year(number(d[a+b:a+b+4])))
	}
	return false
}

func joint(text []byte, i int) int {
	for _, w := range []string{"de ", "of "} {
		if i+len(w) < len(text) && string(text[i:i+len(w)]) == w {
			return i + len(w)
		}
	}
	return i
}

func month(text []byte, i int) int {
	end := span(text, i, isLetter)
	for _, m := range months {
		name, _, _ := strings.Cut(m, ":")
		if equalFold(text[i:end], name) {
			return end
		}
	}
	return i
}

func yearAt(text []byte, i int) int {
	end := span(text, i, isDigit)
	if end-i != 4 || !year(number(text[i:end])) || alnum(at(text, end)) {
		return 0
	}
	return end
}

// birthDate looks for a date behind a word that announces a day of birth, with a
// few words between at most.
func birthDate(text []byte, i int) (start, end int) {
	for words := 0; words < 4 && i < len(text); {
		b := text[i]
		switch {
		case class[b]&isAlnum != 0:
			if end := dateAt(text, i); end > 0 {
				return i, end
			}
			if digit(b) {
				return 0, 0
			}
			i, words = span(text, i, isAlnum), words+1
		case b == '\n' || b == '.' && at(text, i+1) == ' ' && at(text, i+2) != 0 && words > 1:
			return 0, 0
		default:
			i++
		}
	}
	return 0, 0
}
