package index

import "strings"

// synonymTable lists groups of words that people and tools often use for the same thing. There are few, and matches
// by synonyms count little, because large tables find too many unrelated tools.
var synonymTable = synonymGroups(`
create make add new
delete remove
update edit change modify
get fetch retrieve show
search find lookup
send post
folder directory
email mail
repository repo
`)

// synonymGroups maps each word in the table to the other words in its line.
func synonymGroups(table string) map[string][]string {
	m := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		words := strings.Fields(line)
		for i, w := range words {
			m[w] = append(append([]string(nil), words[:i]...), words[i+1:]...)
		}
	}
	return m
}
