package a

// t is a
func t() {}
