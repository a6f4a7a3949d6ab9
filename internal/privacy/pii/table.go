package pii

import "bytes"

// walkTable finds Markdown and CSV tables in a text and scans their cells according to the header. It returns true if
// a header names personal data. In that case it has scanned the whole text.
func (w *documentWalker) walkTable(v textView) bool {
	done := 0
	for from := 0; ; {
		t, ok := findTable(v.text, from)
		if !ok {
			break
		}
		from = t.end
		if columns, ok := w.readHeader(v.text, t); ok {
			w.walkProse(v.subView(done, t.body))
			rows := t.rowRanges(v.text)
			w.learnCells(v, t, rows, columns) // first: they may stand in rows before too
			for _, r := range rows {
				w.walkRow(v, t, r, columns)
			}
			done = t.end
		}
	}
	if done == 0 {
		return false
	}
	w.walkProse(v.subView(done, len(v.text)))
	return true
}

// readHeader returns the meanings of a table's columns, and reports whether any of them suggests personal data.
func (w *documentWalker) readHeader(text []byte, t textGrid) (columns []valueMeaning, personal bool) {
	people, street := false, false
	for _, c := range t.cellRanges(text, t.header, t.headerEnd, nil) {
		m := w.s.meaningOf(string(bytes.Trim(text[c[0]:c[1]], " \t\r\"*`_")))
		if m.person && m.typ == "" { // a column of owners holds their names
			m.typ = Name
		}
		columns = append(columns, m)
		personal = personal || m.typ != "" || m.words != 0
		people = people || m.isPersonal()
		street = street || m.typ == Address && !m.zip
	}
	for i, m := range columns {
		if m.name && people || m.zip && street {
			columns[i].sure = true
		}
	}
	return columns, personal
}

func (w *documentWalker) walkProse(v textView) { w.walkLines(v) }

func (w *documentWalker) learnCells(v textView, t textGrid, rows [][2]int, columns []valueMeaning) {
	var cells [][2]int
	for _, r := range rows {
		cells = t.cellRanges(v.text, r[0], r[1], cells[:0])
		for i, c := range cells {
			if i < len(columns) && columns[i].sure && (columns[i].typ == Name || columns[i].typ == Company) {
				cell := v.text[c[0]:c[1]]
				if start, end := w.s.matchWhole(columns[i].typ, cell, true); end > 0 {
					w.learnName(columns[i].typ, cell[start:end])
				}
			}
		}
	}
}

// walkRow adds a claim for each part of a table row that a token must replace.
func (w *documentWalker) walkRow(v textView, t textGrid, r [2]int, columns []valueMeaning) {
	cells := t.cellRanges(v.text, r[0], r[1], nil)
	for i, c := range cells {
		cell := v.subView(c[0], c[1])
		h := textHints{}
		if i < len(columns) {
			m := columns[i]
			if m.typ != "" && !w.s.off[m.typ] && !(m.name && !m.sure) && !(m.zip && !m.sure) {
				if start, end := w.s.matchWhole(m.typ, cell.text, m.sure); end > 0 {
					w.addClaim(cell, start, end, m.typ)
					continue
				}
			}
			h = textHints{words: m.words, opaque: m.opaque && m.typ == ""}
		}
		w.scanText(cell, h)
	}
}

// textGrid says where a table is in a text. The table consists of a header line and of rows, which extend from the
// offset body to the offset end.
type textGrid struct {
	header, headerEnd, body, end int
	comma                        byte
}

// findTable returns the first table of a text at i or later. A Markdown table begins with a line that contains |,
// followed by a line of dashes. A CSV table begins a paragraph with a line of two or more short cells, followed by a
// line with as many cells.
func findTable(text []byte, i int) (t textGrid, ok bool) {
	head := true // of a paragraph
	for i < len(text) {
		line := lineEnd(text, i)
		next := min(line+1, len(text))
		switch byteAt(text, next) {
		case '|', '-', ':', ' ':
			if second := lineEnd(text, next); bytes.IndexByte(text[i:line], '|') >= 0 && isDashLine(text[next:second]) {
				return readMarkdownTable(text, i, line, min(second+1, len(text))), true
			}
		}
		if head {
			if t, ok := readSeparatedTable(text, i, line, next); ok {
				return t, true
			}
		}
		head = line == i || text[line-1] == ':' || text[line-1] == '\r' && line-1 == i || bytes.HasPrefix(text[i:line], []byte("```"))
		i = next
	}
	return textGrid{}, false
}

func readMarkdownTable(text []byte, head, headEnd, body int) textGrid {
	t := textGrid{head, headEnd, body, body, '|'}
	for t.end < len(text) {
		e := lineEnd(text, t.end)
		if bytes.IndexByte(text[t.end:e], '|') < 0 {
			break
		}
		t.end = min(e+1, len(text))
	}
	return t
}

// readSeparatedTable reads a CSV table whose header line begins at i.
func readSeparatedTable(text []byte, i, line, next int) (textGrid, bool) {
	head, second := text[i:line], lineEnd(text, next)
	if bytes.ContainsAny(head, "(){}=<>") { // a line of a program
		return textGrid{}, false
	}
	for _, comma := range []byte(",;\t|") {
		n := bytes.Count(head, []byte{comma})
		if n == 0 || n > 200 || len(head) > 40*(n+1) || second <= next || bytes.Count(text[next:second], []byte{comma}) < n ||
			comma == ',' && n == 1 && bytes.Contains(head, []byte(", ")) {
			continue
		}
		t := textGrid{i, line, next, next, comma}
		if t.growRows(text, n) > 0 {
			return t, true
		}
	}
	return textGrid{}, false
}

// growRows extends the table by the rows that follow it, as long as each of them has n separators outside quotes. It
// returns the number of added rows.
func (t *textGrid) growRows(text []byte, n int) (rows int) {
	for t.end < len(text) {
		e := t.rowEnd(text, t.end)
		if t.countCommas(text[t.end:e]) != n {
			break
		}
		rows++
		t.end = min(e+1, len(text))
	}
	return rows
}

func (t *textGrid) countCommas(row []byte) (n int) {
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

// rowEnd returns the end of a row, which may contain line breaks in quotes. If a quote is not closed within 512
// bytes, the row ends with its line.
func (t *textGrid) rowEnd(text []byte, i int) int {
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

func (t *textGrid) rowRanges(text []byte) (rows [][2]int) {
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

// cellRanges appends the start and end of each cell of a row, without quotes.
func (t *textGrid) cellRanges(text []byte, start, end int, cells [][2]int) [][2]int {
	from, quoted := start, false
	if t.comma == '|' {
		from = skipByte(text, blanksEnd(text, start, 8), '|')
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

// isDashLine reports whether a line separates the header of a Markdown table from its rows.
func isDashLine(line []byte) bool {
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
