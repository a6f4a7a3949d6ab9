package catalog

import (
	"fmt"
	"strings"
)

// names are a tool's or server's identifiers.
type names struct{ TypeScript, Python string }

func assignServers(all []string) map[string]names { return assign(all) }
func assignTools(all []string) map[string]names   { return assign(all) }

func assign(all []string) map[string]names {
	m, taken := map[string]names{}, map[string]int{}
	for _, n := range all {
		words := split(n)
		camel := ""
		for i, w := range words {
			if i > 0 {
				w = strings.ToUpper(w[:1]) + w[1:]
			}
			camel += w
		}
		snake := strings.Join(words, "_")
		if taken[camel]++; taken[camel] > 1 {
			camel += fmt.Sprint(taken[camel])
			snake += fmt.Sprintf("_%d", taken[camel])
		}
		m[n] = names{camel, snake}
	}
	return m
}
