package engine

import (
	"context"
	"time"

	"retort/internal/config"
)

// Within returns a copy of c whose programs' network requests go to the fake Internet to.
func Within(c Config, to internet) Config {
	c.internet = to
	return c
}

// WithSpoolAbove returns a copy of c with which results of more than above bytes are written to files.
func WithSpoolAbove(c Config, above int64) Config {
	c.spoolAbove = above
	return c
}

// WithExitPatience returns a copy of c with which the engine waits for patience until a server that has closed its
// output exits. After that the server counts as one that does not exit.
func WithExitPatience(c Config, patience time.Duration) Config {
	c.exitPatience = patience
	return c
}

// Reload makes an engine check its configuration files as often as it takes to notice a change. It reports whether
// there was one.
func Reload(e *Engine) (news bool) {
	for range 3 {
		news = e.background.reloader.pollOnce() || news
	}
	return news
}

// OpenChanged opens an engine with a loaded configuration whose settings change has changed.
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
