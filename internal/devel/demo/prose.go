package demo

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"strings"
)

// proseFiles has the texts of the demo data: prose/<genre>.txt has one sentence per line, with {slots} to fill in.
//
//go:embed prose/*.txt
var proseFiles embed.FS

// proseAuthor writes sentences of one genre about the people of a demoWorld.
type proseAuthor struct {
	r         *rand.Rand
	w         *demoWorld
	sentences []string
	deck      []int // indexes of unused sentences; each sentence is used once before any is repeated
}

func newAuthor(w *demoWorld, genre string, r *rand.Rand) *proseAuthor {
	file, err := proseFiles.ReadFile("prose/" + genre + ".txt")
	if err != nil {
		panic(err) // a genre is a constant of this package
	}
	return &proseAuthor{r: r, w: w, sentences: strings.Split(strings.TrimSpace(string(file)), "\n")}
}

// withRandom returns a copy of the author that uses another source of random numbers.
func (a *proseAuthor) withRandom(r *rand.Rand) *proseAuthor {
	return &proseAuthor{r: r, w: a.w, sentences: a.sentences}
}

func (a *proseAuthor) writeSentence() string {
	if len(a.deck) == 0 {
		a.deck = a.r.Perm(len(a.sentences))
	}
	s := a.sentences[a.deck[0]]
	a.deck = a.deck[1:]
	return a.fillSlots(s)
}

// writeParagraph returns a paragraph of n sentences.
func (a *proseAuthor) writeParagraph(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = a.writeSentence()
	}
	return strings.Join(all, " ")
}

// fillSlots replaces each {slot} of a sentence.
func (a *proseAuthor) fillSlots(sentence string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(sentence, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		slot, after, _ := strings.Cut(rest, "}")
		b.WriteString(a.fillSlot(slot))
		sentence = after
	}
}

func (a *proseAuthor) fillSlot(name string) string {
	r := a.r
	switch name {
	case "company":
		return pickOne(r, a.w.companies).Name
	case "person":
		return pickOne(r, a.w.contacts).fullName()
	case "city":
		return pickOne(r, a.w.companies).City
	case "country":
		return pickOne(r, a.w.companies).Country
	case "product":
		return pickOne(r, articleCatalogue()).name
	case "money":
		return fmt.Sprintf("%d,%03d euros", randomBetween(r, 2, 480), 50*r.IntN(20))
	case "n":
		return fmt.Sprint(randomBetween(r, 2, 28))
	case "big":
		return fmt.Sprint(randomBetween(r, 110, 4800))
	case "version":
		return fmt.Sprintf("%d.%d.%d", randomBetween(r, 2, 4), r.IntN(12), r.IntN(9))
	case "month":
		return pickOne(r, strings.Fields("January February March April May June July August September October November December"))
	case "weekday":
		return pickOne(r, strings.Fields("Monday Tuesday Wednesday Thursday Friday"))
	case "quarter":
		return fmt.Sprintf("Q%d", randomBetween(r, 1, 4))
	}
	return "{" + name + "}"
}
