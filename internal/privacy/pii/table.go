package pii

import "bytes"

// table looks for tables in a text, Markdown or CSV, and handles their cells as
// columns. The answer is whether there was one with something personal in its
// header; then the whole text is done.
func (w *walker) table(v view) bool {
	done := 0
	for from := 0; ; {
		t, ok := findTable(v.text, from)
		if !ok {
			break
		}
		from = t.end
		if columns, ok := w.header(v.text, t); ok {
			w.prose(v.slice(done, t.body))
			rows := t.rows(v.text)
			w.learnCells(v, t, rows, columns) // first: they may stand in rows before too
			for _, r := range rows {
				w.row(v, t, r, columns)
			}
			done = t.end
		}
	}
	if done == 0 {
		return false
	}
	w.prose(v.slice(done, len(v.text)))
	return true
}

// header returns what the columns of a table mean, and whether any is personal.
func (w *walker) header(text []byte, t grid) (columns []meaning, personal bool) {
	people, street := false, false
	for _, c := range t.cells(text, t.header, t.headerEnd, nil) {
		m := w.s.meaningOf(string(bytes.Trim(text[c[0]:c[1]], " \t\r\"*`_")))
		if m.person && m.typ == "" { // a column of owners holds their names
			m.typ = Name
		}
		columns = append(columns, m)
		personal = personal || m.typ != "" || m.words != 0
		people = people || m.personal()
		street = street || m.typ == Address && !m.zip
	}
	for i, m := range columns {
		if m.name && people || m.zip && street {
			columns[i].sure = true
		}
	}
	return columns, personal
}

func (w *walker) prose(v view) { w.lines(v) }

func (w *walker) learnCells(v view, t grid, rows [][2]int, columns []meaning) {
	var cells [][2]int
	for _, r := range rows {
		cells = t.cells(v.text, r[0], r[1], cells[:0])
		for i, c := range cells {
			if i < len(columns) && columns[i].sure && (columns[i].typ == Name || columns[i].typ == Company) {
				cell := v.text[c[0]:c[1]]
				if start, end := w.s.whole(columns[i].typ, cell, true); end > 0 {
					w.learn(columns[i].typ, cell[start:end])
				}
			}
		}
	}
}

// row handles the cells of one row.
func (w *walker) row(v view, t grid, r [2]int, columns []meaning) {
	cells := t.cells(v.text, r[0], r[1], nil)
	for i, c := range cells {
		cell := v.slice(c[0], c[1])
		h := hints{}
		if i < len(columns) {
			m := columns[i]
			if m.typ != "" && !w.s.off[m.typ] && !(m.name && !m.sure) && !(m.zip && !m.sure) {
				if start, end := w.s.whole(m.typ, cell.text, m.sure); end > 0 {
					w.claim(cell, start, end, m.typ)
					continue
				}
			}
			h = hints{words: m.words, opaque: m.opaque && m.typ == ""}
		}
		w.text(cell, h)
	}
}

// grid represents a table in a text: the header's line, and the body from body to end.
type grid struct {
	header, headerEnd, body, end int
	comma                        byte
}

// findTable finds the first table of a text at i or behind: a line with | over
// one of dashes; or, at the head of a paragraph, a line of two or more short
// cells with as many in the next.
func findTable(text []byte, i int) (t grid, ok bool) {
	head := true // of a paragraph
	for i < len(text) {
		line := lineEnd(text, i)
		next := min(line+1, len(text))
		switch at(text, next) {
		case '|', '-', ':', ' ':
			if second := lineEnd(text, next); bytes.IndexByte(text[i:line], '|') >= 0 && dashes(text[next:second]) {
				return markdown(text, i, line, min(second+1, len(text))), true
			}
		}
		if head {
			if t, ok := separated(text, i, line, next); ok {
				return t, true
			}
		}
		head = line == i || text[line-1] == ':' || text[line-1] == '\r' && line-1 == i || bytes.HasPrefix(text[i:line], []byte("```"))
		i = next
	}
	return grid{}, false
}

func markdown(text []byte, head, headEnd, body int) grid {
	t := grid{head, headEnd, body, body, '|'}
	for t.end < len(text) {
		e := lineEnd(text, t.end)
		if bytes.IndexByte(text[t.end:e], '|') < 0 {
			break
		}
		t.end = min(e+1, len(text))
	}
	return t
}

// separated reads a table whose header is the line from i.
func separated(text []byte, i, line, next int) (grid, bool) {
	head, second := text[i:line], lineEnd(text, next)
	if bytes.ContainsAny(head, "(){}=<>") { // a line of a program
		return grid{}, false
	}
	for _, comma := range []byte(",;\t|") {
		n := bytes.Count(head, []byte{comma})
		if n == 0 || n > 200 || len(head) > 40*(n+1) || second <= next || bytes.Count(text[next:second], []byte{comma}) < n || comma == ',' && n == 1 && bytes.Contains(head, []byte(", ")) {
			continue
		}
		t := grid{i, line, next, next, comma}
		if t.grow(text, n) > 0 {
			return t, true
		}
	}
	return grid{}, false
}

// grow takes the rows that have n commas outside of quotes.
func (t *grid) grow(text []byte, n int) (rows int) {
	for t.end < len(text) {
		e := t.rowEnd(text, t.end)
		if t.commas(text[t.end:e]) != n {
			break
		}
		rows++
		t.end = min(e+1, len(text))
	}
	return rows
}

func (t *grid) commas(row []byte) (n int) {
	quoted := false
	for _, b := range row {
		if b == '"' {
			quoted = !quoted
		} else if b == t.comma && !quoted {
			n++
		}
	}
	return n
}

// rowEnd returns the end of a row, which may have line breaks in quotes. Quotes that are never closed are none.
func (t *grid) rowEnd(text []byte, i int) int {
	quoted := false
	limit := min(len(text), i+1<<9)
	for j := i; j < limit; j++ {
		switch {
		case text[j] == '"' && t.comma != '|':
			quoted = !quoted
		case text[j] == '\n' && !quoted:
			return j
		}
	}
	if !quoted && limit == len(text) {
		return limit
	}
	return lineEnd(text, i)
}

func (t *grid) rows(text []byte) (rows [][2]int) {
	for i := t.body; i < t.end; {
		e := lineEnd(text, i)
		if t.comma != '|' {
			e = t.rowEnd(text, i)
		}
		e = min(e, t.end)
		rows = append(rows, [2]int{i, e})
		i = e + 1
	}
	return rows
}

// cells returns the ranges of the cells of a row, without quotes around.
func (t *grid) cells(text []byte, start, end int, cells [][2]int) [][2]int {
	from, quoted := start, false
	if t.comma == '|' {
		from = skip(text, blanks(text, start, 8), '|')
	}
	for i := from; i <= end && i <= len(text); i++ {
		if i < end && text[i] == '"' && t.comma != '|' {
			quoted = !quoted
		}
		if i < end && (text[i] != t.comma || quoted) {
			continue
		}
		a, b := from, i
		if b > a && text[b-1] == '\r' {
			b--
		}
		if b-a >= 2 && text[a] == '"' && text[b-1] == '"' {
			a, b = a+1, b-1
		}
		cells = append(cells, [2]int{a, b})
		from = i + 1
	}
	return cells
}

func lineEnd(text []byte, i int) int {
	if e := bytes.IndexByte(text[i:], '\n'); e >= 0 {
		return i + e
	}
	return len(text)
}

// dashes reports whether a line is that under the header of a Markdown table.
func dashes(line []byte) bool {
	n := 0
	for _, b := range line {
		switch b {
		case '-':
			n++
		case '|', ':', ' ', '\t', '\r':
		default:
			return false
		}
	}
	return n >= 3 && bytes.IndexByte(line, '|') >= 0
}
