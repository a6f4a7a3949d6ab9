package engine

import (
	"context"
	"time"

	"retort/internal/config"
)

// Within returns a copy of c with which programs send their network requests to a fake Internet.
func Within(c Config, to internet) Config {
	c.internet = to
	return c
}

// WithSpoolAbove returns a copy of c with which results of more than above bytes are written to files.
func WithSpoolAbove(c Config, above int64) Config {
	c.spoolAbove = above
	return c
}

// WithExitPatience returns a copy of c with another limit for the exit of a server process. A process that runs
// longer than patience after it has closed its output is treated as one that does not exit.
func WithExitPatience(c Config, patience time.Duration) Config {
	c.exitPatience = patience
	return c
}

// Reload makes an engine check its configuration files several times, because one check is not enough to notice a
// change. It reports whether the engine has noticed one.
func Reload(e *Engine) (news bool) {
	for range 3 {
		news = e.background.reloader.pollOnce() || news
	}
	return news
}

// OpenChanged opens an engine whose settings are first read and checked as usual, and then modified by the function
// change.
func OpenChanged(ctx context.Context, c Config, change func(*config.Settings)) (*Engine, error) {
	files := config.NewWatcher(c.readConfig)
	loaded, err := files.LoadFirst()
	if err != nil {
		return nil, err
	}
	change(&loaded.Settings)
	all, err := assemble(ctx, c, loaded, files)
	if err != nil {
		return nil, err
	}
	return &Engine{all, all.execution.pipeline}, nil
}
