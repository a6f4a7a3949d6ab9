package tsc

import "errors"

// Parsed represents a Source in the form that can be sent to another process: everything except the syntax tree.
type Parsed struct {
	Errors []Diagnostic
	Facts  Facts
}

// Parsed returns the part of s that can be sent.
func (s *Source) Parsed() Parsed { return Parsed{s.errors, s.facts} }

// Source returns the Source of the text that p was made from, without its tree. It can be queried but not checked.
func (p Parsed) Source(text string) *Source {
	return &Source{text: text, lines: newLineTable(text), errors: p.Errors, facts: p.Facts}
}

// Checked represents a Result in the form that can be sent to another process.
type Checked struct {
	Diagnostics []Diagnostic
	JavaScript  string
	Text        string
	From, To    []int    // offsets in the emitted code, and in the text
	Shift       [][3]int // of positionMap: start, old, and 1 if inserted
}

// Checked returns the part of r that can be sent.
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

// Result returns the Result that c was made from. source must be the same as for that.
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
