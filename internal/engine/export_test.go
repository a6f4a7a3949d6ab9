package engine

import "time"

// Within returns a copy of c whose programs' network requests go to the fake Internet to.
func Within(c Config, to internet) Config {
	c.internet = to
	return c
}

// WithSpoolAbove returns a copy of c with which answers of more than above bytes become files.
func WithSpoolAbove(c Config, above int64) Config {
	c.spoolAbove = above
	return c
}

// WithExitPatience returns a copy of c that gives a server that closed its output patience to exit.
// After that it counts as a server that does not exit.
func WithExitPatience(c Config, patience time.Duration) Config {
	c.exitPatience = patience
	return c
}

// Reload has an engine look at the files of its configuration as often as it takes to notice a change, and
// reports whether there was one.
func Reload(e *Engine) (news bool) {
	for range 3 {
		news = e.reloader.poll() || news
	}
	return news
}
