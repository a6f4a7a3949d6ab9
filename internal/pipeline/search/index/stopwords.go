package index

import "strings"

// stopWords lists words that say nothing about what a tool does: common English words, and phrases of requests such
// as "please". Words that name an action (find, get, make) are not included.
var stopWords = newWordSet(`
a about above after again against all also am an and any are as at be because been before being below between both
but by can could did do does doing down during each few for from further had has have having he her here hers him his
how i if in into is it its itself just me more most my myself no nor not now of off on once only or other our ours out
over own same she should so some such than that the their theirs them then there these they this those through to too
under until up very was we were what when where which while who whom why will with would you your yours
s t d m ll re ve don
please want need like help let us may might must shall hello hi thanks thank i'm tool tools use using used via
e g eg ie etc
`)

func newWordSet(words string) map[string]struct{} {
	m := map[string]struct{}{}
	for _, w := range strings.Fields(words) {
		m[w] = struct{}{}
	}
	return m
}
