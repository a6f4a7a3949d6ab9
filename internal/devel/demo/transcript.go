package demo

import (
	"fmt"
	"strings"
)

// transcriptTurns is the number of turns in the long transcript. It makes the transcript about 50,000 tokens long
// (o200k_base).
const transcriptTurns = 930

// makeTranscript returns the transcript of a meeting, with the speaker and the time in seconds of each sentence.
func makeTranscript(w *demoWorld, seed string, turns int) string {
	r := newSeededRand(seed)
	a := newAuthor(w, "transcript", r)
	speakers := []worldPerson{w.staff[0], w.staff[9], w.staff[4], w.staff[6], pickOne(r, w.contacts), pickOne(r, w.contacts)}
	var b strings.Builder
	fmt.Fprintf(&b, "Recorded on %s. Present:", formatDay(daysAgo(r, randomBetween(r, 3, 90))))
	for _, p := range speakers {
		fmt.Fprintf(&b, " %s (%s, %s);", p.fullName(), p.Title, p.Company)
	}
	b.WriteString("\n")
	second, last := 4, -1
	for range turns {
		who := r.IntN(len(speakers))
		if who == last {
			who = (who + 1) % len(speakers)
		}
		last = who
		text := a.writeParagraph(randomBetween(r, 1, 2))
		fmt.Fprintf(&b, "\n[%02d:%02d:%02d] %s: %s", second/3600, second/60%60, second%60, speakers[who].fullName(), text)
		second += 2 + len(text)/15
	}
	fmt.Fprintf(&b, "\n\nEnd of the recording.\n")
	return b.String()
}
