package emit

import (
	"slices"
	"strconv"

	"retort/internal/run"
)

// learn says of the type of what a tool answers that it is only what was seen so far. A
// type that says nothing is left out.
func (out *tool) learn(t *run.Tool) {
	if out.output == nil || len(t.OutputSchema) > 0 {
		return
	}
	if out.output.node.isAny() {
		out.output = nil
		return
	}
	out.learned = "learned from " + count(t.Learned.Observations, "answer")
	n := *out.output.node
	n.doc.tags = append(slices.Clip(n.doc.tags), "@"+out.learned)
	out.output.node = &n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
