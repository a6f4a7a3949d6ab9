package python

import (
	"fmt"
	"strings"

	"retort/internal/pipeline/check/rules"
)

// described returns a program's facts as text, one per line.
func described(f *programFacts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "computes %v, star %v, asks %v\n", f.Computes, f.Star, f.Asks)
	for _, i := range f.Imports {
		fmt.Fprintf(&b, "import %q %q known %v lacks %v near %q guarded %v at %v\n", i.Module, i.Name, i.Known, i.Lacks, i.Near, i.Guarded, i.sourcePlace)
	}
	for _, n := range f.Names {
		fmt.Fprintf(&b, "name %s at %v\n", n.Name, n.sourcePlace)
	}
	for _, u := range f.Uses {
		fmt.Fprintf(&b, "use %q free %v at %v\n", u.Path, u.Free, u.sourcePlace)
		if u.Call == nil {
			continue
		}
		fmt.Fprintf(&b, "  called at %v star %v %v\n", u.Call.sourcePlace, u.Call.Star, u.Call.DoubleStar)
		for _, a := range u.Call.Args {
			fmt.Fprintf(&b, "  %s\n", describedArgument(a))
		}
		for _, k := range u.Call.Keywords {
			fmt.Fprintf(&b, "  %s at %v = %s\n", k.Name, k.sourcePlace, describedArgument(k.Value))
		}
	}
	return b.String()
}

func describedArgument(a argumentFact) string {
	text := fmt.Sprintf("%s %s at %v open %v", a.Kind, a.JSON, a.sourcePlace, a.Open)
	for _, k := range a.Keys {
		text += fmt.Sprintf("; %q at %v: %s", k.Name, k.sourcePlace, describedArgument(k.Value))
	}
	return text
}

// drawn returns a tree on one line, in the same format as the test of TypeScript trees.
func drawn(t *rules.SyntaxTree) string {
	var b strings.Builder
	var draw func(i int)
	draw = func(i int) {
		n := t.Nodes[i]
		b.WriteString(n.Kind.String())
		if n.Text != "" {
			b.WriteString(":" + n.Text)
		}
		if n.Bind > 0 {
			b.WriteByte('#')
		}
		if n.Size == 1 {
			return
		}
		b.WriteByte('(')
		for c := i + 1; c < i+int(n.Size); c += int(t.Nodes[c].Size) {
			if c > i+1 {
				b.WriteByte(' ')
			}
			draw(c)
		}
		b.WriteByte(')')
	}
	draw(0)
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), "other("), ")")
}
