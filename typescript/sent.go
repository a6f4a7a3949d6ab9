package tsc

import "errors"

// Parsed holds everything of a Source except the syntax tree, which cannot be sent to another process.
type Parsed struct {
	Errors []Diagnostic
	Facts  Facts
}

// Parsed returns the part of s that can be sent to another process.
func (s *Source) Parsed() Parsed { return Parsed{s.errors, s.facts} }

// Source returns a Source without a syntax tree. text must be the text that p was made from. Its errors and facts can
// be read, but it cannot be checked.
func (p Parsed) Source(text string) *Source {
	return &Source{text: text, lines: newLineTable(text), errors: p.Errors, facts: p.Facts}
}

// Checked holds a Result in a form that can be sent to another process.
type Checked struct {
	Diagnostics []Diagnostic
	JavaScript  string
	Text        string
	From, To    []int    // offsets in the emitted code, and in the text
	Shift       [][3]int // of positionMap: start, old, and 1 if inserted
}

// Checked returns r in a form that can be sent to another process.
func (r *Result) Checked() Checked {
	c := Checked{Diagnostics: r.Diagnostics, JavaScript: r.JavaScript, Text: r.Text, From: r.positions.from, To: r.positions.to}
	for _, p := range r.positions.shift {
		inserted := 0
		if p.inserted {
			inserted = 1
		}
		c.Shift = append(c.Shift, [3]int{p.start, p.old, inserted})
	}
	return c
}

var errSent = errors.New("tsc: offsets that do not fit each other")

// Result returns the Result that c was made from. src must be the Source that was checked.
func (c Checked) Result(src *Source) (*Result, error) {
	if len(c.From) != len(c.To) {
		return nil, errSent
	}
	p := &positionMap{code: newCodeTable(c.JavaScript), from: c.From, to: c.To, text: src.lines}
	for _, s := range c.Shift {
		p.shift = append(p.shift, piece{s[0], s[1], s[2] == 1})
	}
	return &Result{Diagnostics: c.Diagnostics, JavaScript: c.JavaScript, Text: c.Text, positions: p}, nil
}
