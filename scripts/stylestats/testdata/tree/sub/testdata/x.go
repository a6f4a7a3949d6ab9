package x

// v is a
func v() {}
