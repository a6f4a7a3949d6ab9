package relay

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"retort/internal/core"
)

// argumentPath returns a location within arguments as programs would write it, such as filter.labels[2].
func argumentPath(location []string) string {
	var b strings.Builder
	for i, step := range location {
		if _, err := strconv.Atoi(step); err == nil && i > 0 {
			b.WriteString("[" + step + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}

func pathPrefix(at string) string {
	if at == "" {
		return ""
	}
	return fmt.Sprintf("argument %q: ", at)
}

func quoteNames(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = strconv.Quote(n)
	}
	return strings.Join(q, ", ")
}

// maxShown bounds how many values of a list an error message shows.
const maxShown = 20

func listValues(values []any) string {
	shown := make([]string, 0, min(len(values), maxShown))
	for _, v := range values[:min(len(values), maxShown)] {
		shown = append(shown, showValue(v))
	}
	if len(values) > maxShown {
		shown = append(shown, "…")
	}
	return strings.Join(shown, ", ")
}

func showValue(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	b = []byte(core.EscapeIllegible(string(b)))
	if len(b) > 80 {
		return strings.ToValidUTF8(string(b[:80]), "") + "…"
	}
	return string(b)
}

func stringsOf(values []any) []string {
	var out []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}
