package reaper

import "testing"

func TestParseStat(t *testing.T) {
	const tail = " S 10 42 7 34816 42 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 1000 2 18446744073709551615"
	for _, name := range []string{"(sh)", "(a b)", "(x) R 1 1 1 (y)", "())", "(\n)"} {
		s, err := parseStat(41, []byte("41 "+name+tail))
		if err != nil || s != (ProcessStat{PID: 41, Parent: 10, Group: 42, Session: 7, Terminal: 34816, Foreground: 42, State: 'S', Start: 123456}) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	for _, bad := range []string{"", "41 (sh)", "41 (sh) S 1 2", "41 (sh) S a b c d e f g h i j k l m n o p q r s t"} {
		if s, err := parseStat(41, []byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, s)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("41 (sh) S 10 42 7 34816 42 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456"))
	f.Add([]byte("41 ("))
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = parseStat(1, data) })
}
