package index

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"unicode"

	"retort/internal/core"
)

// nameHash maps the hash of a tool's name to the tool's document. A tool has two hashes: one of its name alone, and
// one of the server's name followed by the tool's name. Only letters and digits are hashed, so github.list_issues,
// "GitHub list issues" and github__listIssues have the same hash.
type nameHash struct {
	hash uint64
	doc  uint32
}

// nameRank grades how well a tool's name matches a query that consists of that name.
type nameRank uint8

const (
	byWords    nameRank = iota
	byName              // the query is the tool's name
	byFullName          // the query is the name of server and tool
)

var hashSeed = maphash.MakeSeed()

func hashNames(entries []documentEntry) []nameHash {
	names := make([]nameHash, 0, 2*len(entries))
	var buf []byte
	for d, e := range entries {
		buf = appendFolded(buf[:0], e.tool.Server)
		server := len(buf)
		buf = appendFolded(buf, e.tool.Name)
		names = append(names, nameHash{maphash.Bytes(hashSeed, buf), uint32(d)}, nameHash{maphash.Bytes(hashSeed, buf[server:]), uint32(d)})
	}
	slices.SortFunc(names, func(a, b nameHash) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.doc, b.doc)) })
	return names
}

// findSpelled returns the documents of the tools whose name equals the query, with the rank of each match.
func (s *indexSnapshot) findSpelled(query string) map[uint32]nameRank {
	if len(query) > maxQuery {
		return nil
	}
	found := map[uint32]nameRank{}
	want := appendFolded(nil, query)
	if len(want) == 0 {
		return nil
	}
	hash := maphash.Bytes(hashSeed, want)
	at, _ := slices.BinarySearchFunc(s.exact, hash, func(e nameHash, h uint64) int { return cmp.Compare(e.hash, h) })
	for ; at < len(s.exact) && s.exact[at].hash == hash; at++ {
		e := s.exact[at]
		if r := rankSpelling(string(want), s.entries[e.doc].tool); r > found[e.doc] {
			found[e.doc] = r
		}
	}
	return found
}

func rankSpelling(want string, t *core.Tool) nameRank {
	switch name := string(appendFolded(nil, t.Name)); {
	case want == string(appendFolded(nil, t.Server))+name:
		return byFullName
	case want == name:
		return byName
	}
	return byWords
}

// appendFolded appends the letters and digits of a name to dst, in lower case.
func appendFolded(dst []byte, name string) []byte {
	for _, r := range name {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			dst = append(dst, byte(r))
		case 'A' <= r && r <= 'Z':
			dst = append(dst, byte(r)+'a'-'A')
		case r > unicode.MaxASCII && isWord(r):
			dst = append(dst, strings.ToLower(string(r))...)
		}
	}
	return dst
}
