package pii

import "sync"

// tables describes what all scanners share.
type tables struct {
	words   *vouching
	people  *roleLexicon
	secrets *secretRules
	ids     *forms
	phones  plans
	keys    *dictionary
	starts  [1 << 10]uint64 // hashes of words that vouch or have a role
}

var allTables = sync.OnceValue(func() *tables {
	t := &tables{words: vouchers(), people: people(), secrets: secretTable(), ids: idForms(), phones: parsePlans(phoneList), keys: keyDictionary()}
	for i := range t.starts {
		t.starts[i] = t.words.first[i] | t.people.starts[i]
	}
	return t
})
