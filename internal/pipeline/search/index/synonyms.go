package index

import "strings"

// synonymTable lists words that are often used for the same thing, one group per line. It is short, and a match by a
// synonym has little weight, because a large table would find too many unrelated tools.
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

// synonymGroups maps each word in the table to the other words in the same line.
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
