package a

// Store is a store.
type Store struct{}

// Open opens a store.
func Open() *Store {
	return &Store{}
}

type tokenStore struct{}

// maxSize is the largest.
const maxSize = 1

// The group's comment belongs to none.
const (
	one = 1
	// two are the
	// next.
	two = 2
)

func URLOf() string { return "" }

func (s *Store) Close() {}

func parseAll() {}

// wide has a line of 141 columns: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
func wide() {}
