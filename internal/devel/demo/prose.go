package demo

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"strings"
)

// prose/<genre>.txt has one sentence a line, with {slots} to be filled.
//
//go:embed prose/*.txt
var proseFiles embed.FS

// author writes sentences of one genre about the people of a world.
type author struct {
	r         *rand.Rand
	w         *world
	sentences []string
	deck      []int // sentences not yet used, so that all are before one comes again
}

func newAuthor(w *world, genre string, r *rand.Rand) *author {
	file, err := proseFiles.ReadFile("prose/" + genre + ".txt")
	if err != nil {
		panic(err) // a genre is a constant of this package
	}
	return &author{r: r, w: w, sentences: strings.Split(strings.TrimSpace(string(file)), "\n")}
}

// with returns the same author with another source of random numbers.
func (a *author) with(r *rand.Rand) *author {
	return &author{r: r, w: a.w, sentences: a.sentences}
}

func (a *author) sentence() string {
	if len(a.deck) == 0 {
		a.deck = a.r.Perm(len(a.sentences))
	}
	s := a.sentences[a.deck[0]]
	a.deck = a.deck[1:]
	return a.fill(s)
}

// paragraph returns n sentences.
func (a *author) paragraph(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = a.sentence()
	}
	return strings.Join(all, " ")
}

// fill replaces each {slot} of a sentence.
func (a *author) fill(sentence string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(sentence, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		slot, after, _ := strings.Cut(rest, "}")
		b.WriteString(a.slot(slot))
		sentence = after
	}
}

func (a *author) slot(name string) string {
	r := a.r
	switch name {
	case "company":
		return pick(r, a.w.companies).Name
	case "person":
		return pick(r, a.w.contacts).name()
	case "city":
		return pick(r, a.w.companies).City
	case "country":
		return pick(r, a.w.companies).Country
	case "product":
		return pick(r, catalogue()).name
	case "money":
		return fmt.Sprintf("%d,%03d euros", between(r, 2, 480), 50*r.IntN(20))
	case "n":
		return fmt.Sprint(between(r, 2, 28))
	case "big":
		return fmt.Sprint(between(r, 110, 4800))
	case "version":
		return fmt.Sprintf("%d.%d.%d", between(r, 2, 4), r.IntN(12), r.IntN(9))
	case "month":
		return pick(r, strings.Fields("January February March April May June July August September October November December"))
	case "weekday":
		return pick(r, strings.Fields("Monday Tuesday Wednesday Thursday Friday"))
	case "quarter":
		return fmt.Sprintf("Q%d", between(r, 1, 4))
	}
	return "{" + name + "}"
}
