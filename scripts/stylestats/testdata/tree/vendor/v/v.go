package v

// v is a
func v() {}
