package core

import (
	"fmt"
	"slices"
	"strings"
)

// Impact lists what a program or a call may change or reach, as far as its text shows. Where the text does not show
// it, the worse case is assumed.
type Impact struct {
	FilesAffected    []string `json:"filesAffected"`    // that are written, moved, replaced or deleted
	NetworksAccessed []string `json:"networksAccessed"` // hosts
	CommandsExecuted []string `json:"commandsExecuted"` // with constant arguments
	DataModified     bool     `json:"dataModified"`
	Reversible       bool     `json:"reversible"` // nothing is lost, sent, paid, published or run
}

// Add extends the impact m so that it also covers the impact o.
func (m *Impact) Add(o Impact) {
	for _, part := range []struct {
		to   *[]string
		from []string
	}{{&m.FilesAffected, o.FilesAffected}, {&m.NetworksAccessed, o.NetworksAccessed}, {&m.CommandsExecuted, o.CommandsExecuted}} {
		for _, name := range part.from {
			if !slices.Contains(*part.to, name) {
				*part.to = append(*part.to, name)
			}
		}
	}
	m.DataModified, m.Reversible = m.DataModified || o.DataModified, m.Reversible && o.Reversible
}

// withoutNilLists returns a copy in which nil lists are replaced by empty ones, so that they are [] in JSON.
func (m Impact) withoutNilLists() *Impact {
	for _, list := range []*[]string{&m.FilesAffected, &m.NetworksAccessed, &m.CommandsExecuted} {
		*list = append([]string{}, *list...)
	}
	return &m
}

// ForQuestion returns a copy of the impact, without nil lists, to be stored in a Question.
func (m Impact) ForQuestion() *Impact { return m.withoutNilLists() }

// describeLines describes the impact for a person, in one line for each aspect.
func (m *Impact) describeLines() string {
	yes := map[bool]string{true: "yes", false: "no"}
	names := func(list []string) string {
		if len(list) == 0 {
			return "none"
		}
		var shown []string
		for _, name := range list {
			shown = append(shown, LegibleLine(name))
		}
		return strings.Join(shown, " · ")
	}
	return fmt.Sprintf("  files affected: %s\n  networks accessed: %s\n  commands executed: %s\n  data modified: %s\n  reversible: %s\n",
		names(m.FilesAffected), names(m.NetworksAccessed), names(m.CommandsExecuted), yes[m.DataModified], yes[m.Reversible])
}
