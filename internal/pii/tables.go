package pii

import "sync"

// tables are what all scanners share.
type tables struct {
	words   *vouching
	people  *roleLexicon
	secrets *secretRules
	ids     *forms
	phones  plans
	keys    *dictionary
}

var allTables = sync.OnceValue(func() *tables {
	return &tables{vouchers(), people(), secretTable(), idForms(), parsePlans(phoneList), keyDictionary()}
})
