package pii

import "sync"

// sharedTables holds the lookup tables that are built once for all scanners.
type sharedTables struct {
	words   *contextWords
	people  *roleLexicon
	secrets *secretRules
	ids     *formIndex
	phones  numberingPlans
	keys    *meaningDictionary
	starts  [1 << 10]uint64 // hashes of words that vouch or have a role
}

var allTables = sync.OnceValue(func() *sharedTables {
	t := &sharedTables{
		words: vouchers(), people: people(), secrets: secretTable(), ids: idForms(), phones: parsePlans(phoneList),
		keys: keyDictionary(),
	}
	for i := range t.starts {
		t.starts[i] = t.words.first[i] | t.people.starts[i]
	}
	return t
})
