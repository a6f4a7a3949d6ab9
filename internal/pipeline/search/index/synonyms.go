package index

import "strings"

// synonymTable lists words that tools and people most often use for the same thing. There are few on purpose, and they
// count for little: larger tables find more that was not meant.
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

// synonymGroups maps each word to the other words of its line.
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
