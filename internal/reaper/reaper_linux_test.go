package reaper

import "testing"

func TestParseStat(t *testing.T) {
	const tail = " S 10 42 7 34816 42 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 1000 2 18446744073709551615"
	for _, name := range []string{"(sh)", "(a b)", "(x) R 1 1 1 (y)", "())", "(\n)"} {
		s, err := parseStat(41, []byte("41 "+name+tail))
		if err != nil || s != (stat{pid: 41, pgrp: 42, session: 7, state: 'S', start: "123456"}) {
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

func TestNote(t *testing.T) {
	watched := map[int]string{}
	for _, line := range []string{"+5 100", "+6 ", "+7 300", "-7", "", "+", "+1 9", "+0 9", "+-1 9", "+x 9", "?8 9"} {
		note(watched, line)
	}
	if len(watched) != 2 || watched[5] != "100" || watched[6] != "" {
		t.Errorf("%v", watched)
	}
}

func TestStartTime(t *testing.T) {
	if startTime(1) == "" || startTime(1<<30) != "" {
		t.Errorf("%q %q", startTime(1), startTime(1<<30))
	}
}
