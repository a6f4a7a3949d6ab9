package emit

import (
	"iter"

	"retort/internal/run"
)

func pythonFiles(ts *run.Toolset) iter.Seq[file] {
	return func(yield func(file) bool) {}
}
