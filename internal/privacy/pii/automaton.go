package pii

import (
	"regexp/syntax"
	"slices"
)

// digitAutomaton implements a finite automaton that matches strings of digits with one table lookup per digit. State
// 0 means failure, and state 1 is the start.
type digitAutomaton struct {
	next   [][10]uint16
	accept []bool
}

func (a *digitAutomaton) matchesDigits(d []byte) bool {
	s := uint16(1)
	for _, b := range d {
		if s = a.next[s][b-'0']; s == 0 {
			return false
		}
	}
	return a.accept[s]
}

// compileDigits compiles a regular expression that must match a whole string of digits. If the expression does not
// parse, the automaton matches nothing.
func compileDigits(pattern string) *digitAutomaton {
	a := &digitAutomaton{next: make([][10]uint16, 1), accept: make([]bool, 1)}
	re, err := syntax.Parse("^(?:"+pattern+")$", syntax.Perl)
	if err == nil {
		var prog *syntax.Prog
		if prog, err = syntax.Compile(re.Simplify()); err == nil {
			(&subsetBuilder{prog: prog, a: a, states: map[string]uint16{}}).addState([]uint32{uint32(prog.Start)}, true)
		}
	}
	if err != nil {
		a.next, a.accept = make([][10]uint16, 2), make([]bool, 2)
	}
	return a
}

// subsetBuilder converts a compiled regexp to a deterministic automaton by subset construction: each state stands for
// a set of regexp instructions.
type subsetBuilder struct {
	prog   *syntax.Prog
	a      *digitAutomaton
	states map[string]uint16
}

func (s *subsetBuilder) addState(from []uint32, begin bool) uint16 {
	set, accept := s.closureOf(from, begin)
	if len(set) == 0 && !accept {
		return 0
	}
	key := make([]byte, 0, 2*len(set)+1)
	for _, pc := range set {
		key = append(key, byte(pc), byte(pc>>8))
	}
	if accept {
		key = append(key, 1)
	}
	if id, ok := s.states[string(key)]; ok {
		return id
	}
	id := uint16(len(s.a.next))
	s.states[string(key)] = id
	s.a.next, s.a.accept = append(s.a.next, [10]uint16{}), append(s.a.accept, accept)
	for d := range 10 {
		var to []uint32
		for _, pc := range set {
			if i := &s.prog.Inst[pc]; i.MatchRune(rune('0' + d)) {
				to = append(to, i.Out)
			}
		}
		if len(to) > 0 {
			s.a.next[id][d] = s.addState(to, false)
		}
	}
	return id
}

// closureOf returns the instructions that can be reached from the given ones without consuming a digit. accept
// reports whether the string may end there.
func (s *subsetBuilder) closureOf(from []uint32, begin bool) (set []uint32, accept bool) {
	seen := map[uint32]bool{}
	var visit func(pc uint32, end bool)
	visit = func(pc uint32, end bool) {
		i := &s.prog.Inst[pc]
		if seen[pc] && !end {
			return
		}
		seen[pc] = true
		switch i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			visit(i.Out, end)
			visit(i.Arg, end)
		case syntax.InstCapture, syntax.InstNop:
			visit(i.Out, end)
		case syntax.InstEmptyWidth:
			switch op := syntax.EmptyOp(i.Arg); {
			case op&(syntax.EmptyEndText|syntax.EmptyEndLine) != 0:
				visit(i.Out, true)
			case begin:
				visit(i.Out, end)
			}
		case syntax.InstMatch:
			accept = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if !end {
				set = append(set, pc)
			}
		}
	}
	for _, pc := range from {
		visit(pc, false)
	}
	slices.Sort(set)
	return slices.Compact(set), accept
}
