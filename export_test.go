package retort

// Within has the requests of programs go to a piece of the Internet that is a test's own.
func Within(c Config, to internet) Config {
	c.internet = to
	return c
}
