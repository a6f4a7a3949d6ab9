package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxCell bounds a cell of a table of arguments, in characters. A table with a longer cell is written as JSON.
const maxCell = 60

// argumentRows holds the arguments of several calls of one tool, divided into what they share and what differs.
type argumentRows struct {
	shared map[string]json.RawMessage
	names  []string                     // of the arguments that differ, sorted
	rows   []map[string]json.RawMessage // their values; absent if a call does not have the argument
}

// splitRows divides the arguments of several calls. ok is false if some are not JSON objects, or have two members of
// one name.
func splitRows(calls []json.RawMessage) (r argumentRows, ok bool) {
	r.shared = map[string]json.RawMessage{}
	differs := map[string]bool{}
	for _, call := range calls {
		members, ok := objectMembers(call)
		if !ok {
			return r, false
		}
		r.rows = append(r.rows, members)
	}
	for _, name := range slices.Sorted(maps.Keys(r.rows[0])) {
		expandColumn(r.rows, name)
	}
	maps.Copy(r.shared, r.rows[0])
	for _, members := range r.rows {
		for name, value := range members {
			if shared, ok := r.shared[name]; !ok || !bytes.Equal(shared, value) {
				differs[name] = true
			}
		}
		for name := range r.shared {
			if _, ok := members[name]; !ok {
				differs[name] = true
			}
		}
	}
	for name := range differs {
		delete(r.shared, name)
	}
	r.names = slices.Sorted(maps.Keys(differs))
	return r, true
}

// objectMembers returns the members of a JSON object. ok is false if the value is no object, or if two
// members have the same name.
func objectMembers(object json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	if json.Unmarshal(object, &members) != nil || members == nil || len(members) != countMembers(object) {
		return nil, false
	}
	return members, true
}

// expandColumn splits the column of an argument into one column for each member of its objects, named
// argument.member. It leaves the column unchanged unless the argument is an object in every call and the objects differ.
func expandColumn(rows []map[string]json.RawMessage, name string) {
	var values []map[string]json.RawMessage
	differ := false
	for _, row := range rows {
		members, ok := objectMembers(row[name])
		taken := func(other string) bool { return strings.HasPrefix(other, name+".") }
		if !ok || len(members) == 0 || slices.ContainsFunc(slices.Collect(maps.Keys(row)), taken) {
			return
		}
		values, differ = append(values, members), differ || !bytes.Equal(row[name], rows[0][name])
	}
	if !differ {
		return
	}
	for i, row := range rows {
		delete(row, name)
		for member, value := range values[i] {
			row[name+"."+member] = value
		}
	}
}

// countMembers returns the number of members of a JSON object.
func countMembers(object json.RawMessage) (n int) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return 0
	}
	for ; d.More(); n++ {
		var value json.RawMessage
		if _, err := d.Token(); err != nil || d.Decode(&value) != nil {
			return -1
		}
	}
	return n
}

// describeRows describes the arguments of several calls of one tool for a person: those that they share, a table of
// those that differ, and the sums of columns of numbers.
func describeRows(calls []json.RawMessage) string {
	r, ok := splitRows(calls)
	var b strings.Builder
	if !ok {
		for i, call := range calls {
			fmt.Fprintf(&b, "\narguments of call %d:\n%s\n", i+1, indentJSON(call))
		}
		return b.String()
	}
	if len(r.shared) > 0 {
		shared := plainObject(r.shared)
		fmt.Fprintf(&b, "\narguments of all %d calls:\n%s\n", len(calls), indentJSON(shortFirst(shared)))
	}
	fmt.Fprintf(&b, "\narguments that differ:\n%s", r.writeTable())
	for _, name := range r.names {
		if sum, ok := r.sumColumn(name); ok {
			fmt.Fprintf(&b, "sum of %s: %s\n", LegibleLine(name), sum)
		}
	}
	return b.String()
}

// writeTable returns a line for each call, with aligned columns. If a value is too long for that, each line is a JSON
// object.
func (r argumentRows) writeTable() string {
	var b strings.Builder
	width := make([]int, len(r.names))
	cells := make([][]string, 0, len(r.rows)+1)
	head := make([]string, len(r.names))
	for i, name := range r.names {
		head[i] = LegibleLine(name)
		if !plainCell.MatchString(name) {
			head[i] = LegibleLine(strconv.Quote(name)) // with blanks it could be taken for two columns
		}
	}
	cells = append(cells, head)
	for _, row := range r.rows {
		line := make([]string, len(r.names))
		for i, name := range r.names {
			line[i] = cellText(row[name])
		}
		cells = append(cells, line)
	}
	for _, line := range cells {
		for i, cell := range line {
			if width[i] = max(width[i], len([]rune(cell))); width[i] > maxCell {
				return r.writeObjects()
			}
		}
	}
	for n, line := range cells {
		number := ""
		if n > 0 {
			number = fmt.Sprint(n)
		}
		fmt.Fprintf(&b, "%5s", number)
		for i, cell := range line {
			fmt.Fprintf(&b, "  %-*s", width[i], cell)
		}
		b.WriteString("\n")
	}
	return trimLines(b.String())
}

// cellText returns a value for a table: a string without quotes if it is not ambiguous, otherwise JSON.
func cellText(value json.RawMessage) string {
	if value == nil {
		return "-"
	}
	var text string
	if json.Unmarshal(value, &text) == nil && plainCell.MatchString(text) && !json.Valid([]byte(text)) {
		return LegibleLine(text)
	}
	return LegibleLine(string(value))
}

// plainCell matches strings that are clear without quotes, unless they are JSON themselves, such as true.
var plainCell = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.@/:+-]*$`)

// writeObjects returns the arguments that differ as one JSON object for each call.
func (r argumentRows) writeObjects() string {
	var b strings.Builder
	for i, row := range r.rows {
		own := map[string]json.RawMessage{}
		for _, name := range r.names {
			if value, ok := row[name]; ok {
				own[name] = value
			}
		}
		text := plainObject(own)
		fmt.Fprintf(&b, "\n%d. %s\n", i+1, indentJSON(shortFirst(text)))
	}
	return b.String()
}

// plainObject returns a JSON object in which no character is escaped for HTML.
func plainObject(members map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(members) // they are JSON
	return bytes.TrimSpace(b.Bytes())
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// decimal matches the numbers that are added up. Longer ones are not, so that a number cannot take long to add.
var decimal = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,10})?$`)

// sumColumn returns the exact sum of an argument of all calls. ok is false unless all values are numbers that are not
// ids.
func (r argumentRows) sumColumn(name string) (sum string, ok bool) {
	if IsIDName(name) {
		return "", false
	}
	total, digits := new(big.Rat), 0
	for _, row := range r.rows {
		text := string(row[name])
		if !decimal.MatchString(text) {
			return "", false
		}
		_, fraction, _ := strings.Cut(text, ".")
		digits = max(digits, len(fraction))
		value, _ := new(big.Rat).SetString(text)
		total.Add(total, value)
	}
	return total.FloatString(digits), true
}

// IsIDName reports whether the value of an argument of this name identifies something: id, userId, record_ids.
func IsIDName(name string) bool {
	switch strings.ToLower(name) {
	case "id", "ids", "uuid", "number":
		return true
	}
	for _, suffix := range []string{"Id", "ID", "Ids", "IDs", "_id", "_ids", "-id"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// effectsTool returns the tool that all calls of the question are of, as server.tool, or "" if there are several.
func (q Question) effectsTool() string {
	for _, e := range q.Effects {
		if e.Server != q.Effects[0].Server || e.Tool != q.Effects[0].Tool || e.Effect != q.Effects[0].Effect {
			return ""
		}
	}
	if len(q.Effects) == 0 {
		return ""
	}
	return LegibleLine(q.Effects[0].Server) + "." + LegibleLine(q.Effects[0].Tool)
}

// effectRows returns the arguments of the question's calls.
func (q Question) effectRows() (rows []json.RawMessage) {
	for _, e := range q.Effects {
		rows = append(rows, e.Arguments)
	}
	return rows
}

// batchLine returns one line of text that describes the calls that a program names in advance.
func (q Question) batchLine() string {
	if tool := q.effectsTool(); tool != "" {
		return fmt.Sprintf("call %s %d times (%s)", tool, len(q.Effects), q.Effects[0].Effect)
	}
	return fmt.Sprintf("make %d calls", len(q.Effects))
}
