// Package paging recognises how tools return long lists in pages, and reads such lists page by page. It does no I/O.
package paging

import (
	"slices"
	"strings"
)

// Style is a way of paging.
type Style uint8

// The ways of paging.
const (
	Whole  Style = iota // one answer has everything
	Next                // an answer has the value that selects the next page: a cursor, a number or a link
	LastID              // the id of the last item selects the next page
	Page                // pages are numbered
	Offset              // the number of earlier items selects the next page
)

// Method says how one tool pages. Its paths lead to fields of an answer; a path that is nil leads nowhere.
type Method struct {
	Style Style
	Items []string // path of the list
	param Input    // that selects the page
	next  []string // path of the value for param
	id    string   // of items, for LastID

	more, end, pages, total, shown []string // paths
}

// String describes the method in a few words, such as "cursor → next_cursor". It returns "" for Whole.
func (m *Method) String() string {
	switch m.Style {
	case Whole:
		return ""
	case LastID:
		return m.param.Name + " → last " + m.id
	case Next:
		if linkFields.has(foldName(lastOf(m.next))) && !cursorParams.has(foldName(m.param.Name)) {
			return m.param.Name + " → " + strings.Join(m.next, ".") + " (link)"
		}
		return m.param.Name + " → " + strings.Join(m.next, ".")
	}
	for _, path := range [][]string{m.pages, m.total, m.more, m.end} {
		if path != nil {
			return m.param.Name + " → " + strings.Join(path, ".")
		}
	}
	return m.param.Name
}

// Describe returns a few words about how a tool pages, judged by its parameters and the Shape of its answers, or "" if
// it does not seem to page. The answer may be nil, if nothing is known of it; then only parameters count that hardly
// have another meaning.
func Describe(inputs []Input, answer *Shape) string {
	if answer != nil {
		m, problem := Recognize(inputs, answer)
		if problem != "" {
			return ""
		}
		return m.String()
	}
	if in, ok := findInput(inputs, cursorParams[:len(cursorParams)-1], String); ok {
		return in.Name
	}
	if in, ok := findInput(inputs, idParams[:len(idParams)-1], Any); ok {
		return in.Name
	}
	if _, sized := findInput(inputs, sizeParams, Number); !sized {
		return ""
	}
	for _, names := range []nameRank{pageParams, offsetParams[:2]} {
		if in, ok := findInput(inputs, names, Number); ok {
			return in.Name
		}
	}
	return ""
}

// Recognize returns how a tool pages, judged by its parameters and the Shape of its first answer. If the answer has no
// list, or several of which none is known to be the one, problem says so.
func Recognize(inputs []Input, answer *Shape) (m *Method, problem string) {
	items, problem := findItems(answer, 0)
	if problem != "" {
		return nil, problem
	}
	m = &Method{Items: items}
	places := placesOf(answer, items)
	m.more, m.end = findField(places, moreFields, Bool), findField(places, endFields, Bool)
	m.pages, m.total = findField(places, pagesFields, Number), findField(places, totalFields, Number)
	if m.findNext(inputs, places) || m.findLastID(inputs, answer) {
		return m, ""
	}
	_, hasCursor := findInput(inputs, cursorParams, String)
	told := m.more != nil || m.end != nil || m.total != nil
	switch page, ok := findInput(inputs, pageParams, Number); {
	case m.next != nil: // it is null: this is the last page
	case ok && (m.pages != nil || told || !hasCursor):
		m.Style, m.param, m.shown = Page, page, findField(places, shownFields, Number)
	default:
		if offset, ok := findInput(inputs, offsetParams, Number); ok && (told || !hasCursor) {
			m.Style, m.param, m.shown, m.pages = Offset, offset, findField(places, offsetParams, Number), nil
		}
	}
	return m, ""
}

// findInput returns the parameter with the most telling of some names that can have a value of a type in kind.
func findInput(inputs []Input, names nameRank, kind Kind) (Input, bool) {
	for _, name := range names {
		for _, in := range inputs {
			if foldName(in.Name) == name && in.Kind&kind != 0 {
				return in, true
			}
		}
	}
	return Input{}, false
}

// isList reports whether values are lists, as far as that is known.
func (s *Shape) isList() bool { return s.Kind&List != 0 && s.Kind != Any }

// findItems returns the path of the list in an answer. The list may be in an object that is in the answer, as in
// {"data": {"items": []}}.
func findItems(s *Shape, depth int) (path []string, problem string) {
	if s.isList() {
		return []string{}, ""
	}
	const deepest = 2
	var lists, around []Member
	for _, m := range s.Members {
		switch {
		case m.Shape.isList():
			lists = append(lists, m)
		case m.Shape.Kind&Object != 0 && depth < deepest && !containers.has(foldName(m.Name)):
			if _, none := findItems(m.Shape, depth+1); none == "" {
				around = append(around, m)
			}
		}
	}
	if name, ok := chooseMember(lists); ok {
		return []string{name}, ""
	}
	name, ok := chooseMember(around)
	switch {
	case len(lists) > 0, !ok && len(around) > 0:
		return nil, "its answer has several lists"
	case !ok:
		return nil, "its answer has no list of items"
	}
	inner, _ := findItems(s.member(name), depth+1)
	return append([]string{name}, inner...), ""
}

// chooseMember returns the name of the member that has the items: the only one, the one with a usual name, or the only
// one that is a list of objects.
func chooseMember(found []Member) (name string, ok bool) {
	if len(found) == 1 {
		return found[0].Name, true
	}
	for _, usual := range itemsFields {
		for _, m := range found {
			if foldName(m.Name) == usual {
				return m.Name, true
			}
		}
	}
	objects := slices.DeleteFunc(slices.Clone(found), func(m Member) bool {
		return m.Shape.Item == nil || m.Shape.Item.Kind&Object == 0
	})
	if len(objects) == 1 {
		return objects[0].Name, true
	}
	return "", false
}

// place is an object of an answer that may have facts about the page.
type place struct {
	path   []string
	object *Shape
	folded []string // names of its members
}

func newPlace(path []string, object *Shape) place {
	p := place{path: path, object: object}
	for _, m := range object.Members {
		p.folded = append(p.folded, foldName(m.Name))
	}
	return p
}

// pathTo returns the path of the member with index i.
func (p place) pathTo(i int) []string { return append(slices.Clip(p.path), p.object.Members[i].Name) }

// placesOf returns the objects on the path to the items, and the containers in them.
func placesOf(answer *Shape, items []string) []place {
	at := newPlace(nil, answer)
	places := []place{at}
	for _, name := range items {
		inner := at.object.member(name)
		if inner == nil || inner.Kind&Object == 0 {
			break
		}
		at = newPlace(append(slices.Clip(at.path), name), inner)
		places = append(places, at)
	}
	const deep = 3
	for i := 0; i < len(places) && len(places) < maxMembers; i++ {
		p := places[i]
		if len(p.path) > deep {
			continue
		}
		for j, m := range p.object.Members {
			if m.Shape.Kind&Object != 0 && containers.has(p.folded[j]) {
				places = append(places, newPlace(p.pathTo(j), m.Shape))
			}
		}
	}
	return places
}

// findField returns the path of the field with the most telling of some names that can have a value of a type in kind.
func findField(places []place, names nameRank, kind Kind) []string {
	for _, name := range names {
		for _, p := range places {
			for i, m := range p.object.Members {
				if p.folded[i] == name && m.Shape.Kind&kind != 0 {
					return p.pathTo(i)
				}
			}
		}
	}
	return nil
}

// findNext finds the value that selects the next page, and the parameter for it. If an answer marks the last page by
// such a field without a value, findNext sets only m.next.
func (m *Method) findNext(inputs []Input, places []place) bool {
	best := len(nextFields) + 1
	for _, p := range places {
		inside := foldName(lastOf(p.path)) == "next"
		for i, f := range p.object.Members {
			rank := rankNext(p.folded[i], inside)
			if rank < 0 || f.Shape.Kind&(String|Number|Null) == 0 {
				continue
			}
			if f.Shape.Kind&(String|Number) == 0 {
				if m.next == nil && strings.HasPrefix(p.folded[i], "next") {
					m.next = p.pathTo(i)
				}
			} else if param, ok := nextParam(inputs, p.folded[i], f.Shape.Kind); ok && rank < best {
				best, m.Style, m.param, m.next = rank, Next, param, p.pathTo(i)
			}
		}
	}
	return m.Style == Next
}

// rankNext returns how telling a name is of a field that selects the next page, 0 for the most telling, or -1 for a
// name of other meaning. The argument inside says whether the field is in an object named next.
func rankNext(folded string, inside bool) int {
	rank := slices.Index(nextFields, folded)
	switch {
	case inside:
		return slices.Index(insideNext, folded)
	case rank < 0 && selectsNext(folded):
		return len(nextFields)
	}
	return rank
}

// nextParam returns the parameter that takes the value of a field such as next_cursor.
func nextParam(inputs []Input, folded string, kind Kind) (Input, bool) {
	rest := strings.TrimPrefix(folded, "next")
	for _, name := range []string{rest, folded} {
		if in, ok := findInput(inputs, nameRank{name}, Any); ok && selectsPage(name) {
			return in, true
		}
	}
	numbered := pageParams.has(rest) || offsetParams.has(rest) || rest == "" && kind&String == 0
	if !numbered {
		for _, names := range []nameRank{cursorParams, idParams} {
			if in, ok := findInput(inputs, names, Any); ok {
				return in, true
			}
		}
	}
	if !numbered && !linkFields.has(folded) {
		return Input{}, false
	}
	for _, names := range []nameRank{pageParams, offsetParams} {
		if in, ok := findInput(inputs, names, Number); ok && (rest == "" || linkFields.has(folded) || names.has(rest)) {
			return in, true
		}
	}
	return Input{}, false
}

// findLastID reports whether the id of the last item selects the next page. The parameter after has other meanings,
// too, so it counts only if the answer says whether there is more.
func (m *Method) findLastID(inputs []Input, answer *Shape) bool {
	in, ok := findInput(inputs, idParams, Any)
	if !ok || m.next != nil || foldName(in.Name) == "after" && m.more == nil && m.end == nil {
		return false
	}
	list := answer
	for _, name := range m.Items {
		list = list.member(name)
	}
	if list.Item == nil {
		return false
	}
	for _, usual := range idFields {
		for _, f := range list.Item.Members {
			if foldName(f.Name) == usual && f.Shape.Kind&(String|Number) != 0 {
				m.Style, m.param, m.id = LastID, in, f.Name
				return true
			}
		}
	}
	return false
}

func lastOf(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}
