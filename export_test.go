package retort

import "time"

// Within returns a configuration with which the requests of programs go to a piece of the Internet that is a test's own.
func Within(c Config, to internet) Config {
	c.internet = to
	return c
}

// WithSpoolAbove returns a configuration with which answers of more bytes than above are files.
func WithSpoolAbove(c Config, above int64) Config {
	c.spoolAbove = above
	return c
}

// WithExitPatience returns a configuration in which a server that closed its output has so long to
// exit before it counts as one that does not.
func WithExitPatience(c Config, patience time.Duration) Config {
	c.exitPatience = patience
	return c
}
