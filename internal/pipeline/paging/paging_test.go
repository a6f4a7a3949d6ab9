package paging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func schema(properties string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)
}

// TestRecognize checks which method is recognised from parameters and a first answer.
func TestRecognize(t *testing.T) {
	for _, c := range []struct{ properties, answer, want string }{
		{`"cursor":{"type":"string"}`, `{"items":[1],"next_cursor":"b"}`, "cursor → next_cursor"},
		{`"cursor":{"type":"string"}`, `{"members":[1],"response_metadata":{"next_cursor":"b"}}`, "cursor → response_metadata.next_cursor"},
		{`"pageToken":{"type":"string"}`, `{"files":[{}],"nextPageToken":"b"}`, "pageToken → nextPageToken"},
		{`"after":{"type":"string"}`, `{"issues":{"nodes":[1],"pageInfo":{"hasNextPage":true,"endCursor":"c"}}}`, "after → issues.pageInfo.endCursor"},
		{`"after":{"type":"string"}`, `{"results":[1],"paging":{"next":{"link":"https://x/y?after=2","after":"2"}}}`, "after → paging.next.after"},
		{`"after":{"type":"string"}`, `{"data":[{"id":"a"}],"last_id":"a","has_more":true}`, "after → last_id"},
		{`"chunk":{"type":"integer"}`, `{"rows":[1],"nextChunk":2}`, "chunk → nextChunk"},
		{`"page":{"type":"integer"},"q":{"type":"string"}`, `{"items":[1],"next_page":2}`, "page → next_page"},
		{`"offset":{"type":"integer"}`, `{"items":[1],"next_offset":50}`, "offset → next_offset"},
		{`"page":{"type":"integer"}`, `{"count":9,"next":"https://x/y?page=2","results":[1]}`, "page → next (link)"},
		{`"page":{"type":"integer"}`, `{"_embedded":{"orders":[1]},"_links":{"next":{"href":"/orders?page=2"}}}`, "page → _links.next.href (link)"},
		{`"starting_after":{"type":"string"},"limit":{"type":"integer"}`, `{"object":"list","data":[{"id":"in_1"}],"has_more":true}`, "starting_after → last id"},
		{`"page":{"type":"integer"}`, `{"rows":[1],"page":1,"pages":3}`, "page → pages"},
		{`"page":{"type":"number"}`, `{"content":[1],"totalPages":3,"number":0,"last":false}`, "page → totalPages"},
		{`"page":{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `[{"id":1}]`, "page"},
		{`"page":{"type":"integer"}`, `{"items":[1],"has_more":true}`, "page → has_more"},
		{`"offset":{"type":"integer"}`, `{"items":[1],"total":3}`, "offset → total"},
		{`"startAt":{"type":"integer"}`, `{"issues":[1],"startAt":0,"maxResults":1,"total":3}`, "startAt → total"},
		{`"cursor":{"type":"string"}`, `{"items":[1],"next_cursor":""}`, ""},
		{`"cursor":{"type":"string"}`, `{"items":[1],"next_cursor":null,"total":9}`, ""},
		{`"page":{"type":"string"}`, `{"blocks":[1],"parent":"x"}`, ""},
		{`"from":{"type":"string"}`, `{"mails":[1],"total":1}`, ""},
		{`"status":{"type":"string"}`, `{"tasks":[1],"next_status":"done","next_run":"2026-01-01"}`, ""},
		{``, `[1,2]`, ""},
		{``, `{"items":[1],"labels":["a"]}`, ""},
		{``, `{"owners":[{}],"labels":["a"]}`, ""},
		{``, `{"a":[1],"b":[2]}`, "its answer has several lists"},
		{``, `{"a":{"x":[1]},"b":{"x":[2]}}`, "its answer has several lists"},
		{``, `{"name":"x"}`, "its answer has no list of items"},
		{``, `"text"`, "its answer has no list of items"},
	} {
		m, problem := Recognize(InputsOf(schema(c.properties)), ShapeOf(json.RawMessage(c.answer)))
		got := problem
		if problem == "" {
			got = m.String()
		}
		if got != c.want {
			t.Errorf("%s %s\n is %q, want %q", c.properties, c.answer, got, c.want)
		}
	}
}

// TestDescribeUnknown checks what is said of tools of whose answers nothing is known.
func TestDescribeUnknown(t *testing.T) {
	for properties, want := range map[string]string{
		`"cursor":{"type":"string"}`:                              "cursor",
		`"starting_after":{"type":"string"}`:                      "starting_after",
		`"page":{"type":"integer"},"perPage":{"type":"integer"}`:  "page",
		`"offset":{"type":"integer"},"limit":{"type":"integer"}`:  "offset",
		`"page":{"type":"integer"}`:                               "",
		`"after":{"type":"string"}`:                               "",
		`"start":{"type":"integer"},"count":{"type":"integer"}`:   "",
		`"offset":{"type":"integer"},"length":{"type":"integer"}`: "",
	} {
		if got := Describe(InputsOf(schema(properties)), nil); got != want {
			t.Errorf("%s is %q, want %q", properties, got, want)
		}
	}
}

// readAll reads all pages of a tool that answers by a function of its arguments. It returns the items of all pages and
// the arguments of all calls.
func readAll(t *testing.T, properties, given string, answer func(arguments map[string]any) string) (items, calls string, err error) {
	t.Helper()
	r := NewReader("box.list", schema(properties))
	for range 20 {
		arguments := r.Arguments(json.RawMessage(given))
		var a map[string]any
		if err := json.Unmarshal(arguments, &a); err != nil {
			t.Fatalf("%s: %v", arguments, err)
		}
		calls += string(arguments)
		page, more, refused := r.ReadPage(json.RawMessage(given), json.RawMessage(answer(a)))
		if refused != nil {
			return items, calls, refused
		}
		items += string(page)
		if !more {
			return items, calls, nil
		}
	}
	return items, calls, fmt.Errorf("it does not end")
}

// turns answers with one text after the other.
func turns(answers ...string) func(map[string]any) string {
	return func(map[string]any) string {
		first := answers[0]
		answers = answers[min(1, len(answers)-1):]
		return first
	}
}

// TestReadPages checks that all items are read, and with which arguments.
func TestReadPages(t *testing.T) {
	for name, c := range map[string]struct {
		properties, given, items, calls string
		answers                         []string
	}{
		"cursor": {
			`"cursor":{"type":"string"}`, `{"status":"x"}`, `[1,2][][3]`, `{"status":"x"}{"status":"x","cursor":"b"}{"status":"x","cursor":"c"}`,
			[]string{`{"items":[1,2],"next_cursor":"b"}`, `{"items":[],"next_cursor":"c"}`, `{"items":[3]}`},
		},
		"cursor of the program": {
			`"cursor":{"type":"string"}`, `{"cursor":"b","a":1}`, `[2][3]`, `{"cursor":"b","a":1}{"a":1,"cursor":"c"}`,
			[]string{`{"items":[2],"next_cursor":"c"}`, `{"items":[3],"next_cursor":null}`},
		},
		"number for a text": {
			`"cursor":{"type":"string"}`, `{}`, `[1][2]`, `{}{"cursor":"20"}`, []string{`{"items":[1],"next_cursor":20}`, `{"items":[2],"next_cursor":null}`},
		},
		"has_more counts more than a cursor": {
			`"cursor":{"type":"string"}`, `{}`, `[1]`, `{}`, []string{`{"items":[1],"next_cursor":"b","has_more":false}`},
		},
		"last id": {
			`"starting_after":{"type":"string"}`, `{"limit":2}`, `[{"id":"a"},{"id":"b"}][{"id":"c"}]`, `{"limit":2}{"limit":2,"starting_after":"b"}`,
			[]string{`{"data":[{"id":"a"},{"id":"b"}],"has_more":true}`, `{"data":[{"id":"c"}],"has_more":false}`},
		},
		"pages": {
			`"page":{"type":"integer"}`, `{}`, `[1][2][3]`, `{}{"page":2}{"page":3}`, []string{`{"rows":[1],"pages":3}`, `{"rows":[2],"pages":3}`, `{"rows":[3],"pages":3}`},
		},
		"pages from 0 by what is shown": {
			`"page":{"type":"integer"}`, `{}`, `[1][2]`, `{}{"page":1}`, []string{`{"content":[1],"totalPages":2,"number":0}`, `{"content":[2],"totalPages":2,"number":1}`},
		},
		"a number that is no page": {
			`"page":{"type":"integer"}`, `{}`, `[1][2]`, `{}{"page":2}`, []string{`{"rows":[1],"pages":2,"number":20}`, `{"rows":[2],"pages":2,"number":20}`},
		},
		"pages from 0 by the schema": {
			`"page":{"type":"integer","minimum":0}`, `{}`, `[1][2]`, `{}{"page":1}`, []string{`{"rows":[1],"pages":2}`, `{"rows":[2],"pages":2}`},
		},
		"pages of the program": {
			`"page":{"type":"integer"}`, `{"page":2}`, `[2][3]`, `{"page":2}{"page":3}`, []string{`{"rows":[2],"pages":3}`, `{"rows":[3],"pages":3}`},
		},
		"pages until one is empty": {
			`"page":{"type":"integer"}`, `{}`, `[1][2][]`, `{}{"page":2}{"page":3}`, []string{`[1]`, `[2]`, `[]`},
		},
		"pages by a total": {
			`"page":{"type":"integer"}`, `{}`, `[1,2][3]`, `{}{"page":2}`, []string{`{"rows":[1,2],"total":3}`, `{"rows":[3],"total":3}`},
		},
		"offset": {
			`"offset":{"type":"integer"}`, `{}`, `[1,2][3]`, `{}{"offset":2}`, []string{`{"items":[1,2],"total":3}`, `{"items":[3],"total":3}`},
		},
		"offset of the program": {
			`"offset":{"type":"integer"}`, `{"offset":1}`, `[2][3]`, `{"offset":1}{"offset":2}`, []string{`{"items":[2],"total":3}`, `{"items":[3],"total":3}`},
		},
		"offset from 1": {
			`"startIndex":{"type":"integer"}`, `{}`, `[1,2][3]`, `{}{"startIndex":3}`,
			[]string{`{"Resources":[1,2],"startIndex":1,"totalResults":3}`, `{"Resources":[3],"startIndex":3,"totalResults":3}`},
		},
		"offset with a total that is too large": {
			`"offset":{"type":"integer"}`, `{}`, `[1][]`, `{}{"offset":1}`, []string{`{"items":[1],"total":3}`, `{"items":[],"total":3}`},
		},
		"link": {
			`"page":{"type":"integer"},"status":{"type":"string"}`, `{"status":"x"}`, `[1][2]`, `{"status":"x"}{"status":"x","page":2}`,
			[]string{`{"results":[1],"next":"https://api.example/x?status=all&page=2&delete=true"}`, `{"results":[2],"next":null}`},
		},
		"link without a host": {
			`"cursor":{"type":"string"}`, `{}`, `[1][2]`, `{}{"cursor":"a/b"}`, []string{`{"data":[1],"links":{"next":"/x?cursor=a%2Fb"}}`, `{"data":[2],"links":{}}`},
		},
		"next is a cursor": {
			`"cursor":{"type":"string"}`, `{}`, `[1][2]`, `{}{"cursor":"/b="}`, []string{`{"data":[1],"next":"/b="}`, `{"data":[2],"next":""}`},
		},
		"everything at once":           {``, `{}`, `[1,2]`, `{}`, []string{`{"items":[1,2],"total":2}`}},
		"everything at once, a cursor": {`"cursor":{"type":"string"},"page":{"type":"integer"}`, `{}`, `[1]`, `{}`, []string{`[1]`}},
		"no item":                      {`"cursor":{"type":"string"}`, `{}`, `[]`, `{}`, []string{`{"items":[],"next_cursor":null}`}},
		"null for no item":             {`"starting_after":{"type":"string"}`, `{}`, `[{"id":1}][]`, `{}{"starting_after":"1"}`, []string{`{"data":[{"id":1}],"has_more":true}`, `{"data":null}`}},
		"a name that objects have":     {`"cursor":{"type":"string"}`, `{"__proto__":{"a":1}}`, `[1][2]`, `{"__proto__":{"a":1}}{"__proto__":{"a":1},"cursor":"b"}`, []string{`{"__proto__":{"items":[7]},"items":[1],"next_cursor":"b"}`, `{"items":[2]}`}},
	} {
		items, calls, err := readAll(t, c.properties, c.given, turns(c.answers...))
		if items != c.items || calls != c.calls || err != nil {
			t.Errorf("%s: %s by %s, %v\nwant %s by %s", name, items, calls, err, c.items, c.calls)
		}
	}
}

// TestStops checks that reading stops with an error where it would repeat pages, lose items or never end.
func TestStops(t *testing.T) {
	long := strings.Repeat("x", maxCursor)
	for name, c := range map[string]struct {
		properties, given, items, want string
		answers                        []string
	}{
		"the cursor of this page": {
			`"cursor":{"type":"string"}`, `{}`, `[1]`, "does not advance", []string{`{"items":[1],"next_cursor":"b"}`, `{"items":[2],"next_cursor":"b"}`},
		},
		"the cursor of the program": {`"cursor":{"type":"string"}`, `{"cursor":"b"}`, ``, "does not advance", []string{`{"items":[1],"next_cursor":"b"}`}},
		"a cursor of before": {
			`"cursor":{"type":"string"}`, `{}`, `[1][2]`, "does not advance",
			[]string{`{"items":[1],"next_cursor":"b"}`, `{"items":[2],"next_cursor":"c"}`, `{"items":[3],"next_cursor":"b"}`},
		},
		"the same items": {`"page":{"type":"integer"}`, `{}`, `[1]`, "returned the same items on page 2 as on an earlier page", []string{`[1]`}},
		"the same last id": {
			`"starting_after":{"type":"string"}`, `{}`, `[{"id":1}]`, "does not advance",
			[]string{`{"data":[{"id":1}],"has_more":true}`, `{"data":[{"id":0},{"id":1}],"has_more":true}`},
		},
		"a long cursor": {`"cursor":{"type":"string"}`, `{}`, ``, "returned a value of 8194 bytes for cursor on page 1; at most 8192 are allowed", []string{`{"items":[1],"next_cursor":"` + long + `"}`}},
		"another shape": {
			`"cursor":{"type":"string"}`, `{}`, `[1]`, "page 2 of box.list has another shape than page 1: it has no list items",
			[]string{`{"items":[1],"next_cursor":"b"}`, `{"error":"x"}`},
		},
		"a cursor that is an object": {
			`"cursor":{"type":"string"}`, `{}`, `[1]`, "next_cursor is no text or number",
			[]string{`{"items":[1],"next_cursor":"b"}`, `{"items":[2],"next_cursor":{"a":1}}`},
		},
		"more, and no way": {`"limit":{"type":"integer"}`, `{}`, ``, "there is more, but not how to get it", []string{`{"items":[1],"has_more":true}`}},
		"more, and an empty page": {
			`"starting_after":{"type":"string"}`, `{}`, `[{"id":1}]`, "page 2 of box.list says that there is more", []string{`{"data":[{"id":1}],"has_more":true}`, `{"data":[],"has_more":true}`},
		},
		"a total, and no way":  {``, `{}`, ``, "has 1 of 9 items", []string{`{"items":[1],"total":9}`}},
		"pages, and no way":    {``, `{}`, ``, "is one of 9 pages", []string{`{"items":[1],"pages":9}`}},
		"a cursor, and no way": {`"q":{"type":"string"}`, `{}`, ``, "no known parameter takes the value of next_cursor", []string{`{"items":[1],"next_cursor":"b"}`}},
		"a link with nothing":  {`"page":{"type":"integer"}`, `{}`, ``, "the link in next has none of its parameters", []string{`{"items":[1],"next":"https://x/?q=1"}`}},
		"no list":              {``, `{}`, ``, "its answer has no list of items", []string{`{"path":"x"}`}},
	} {
		items, _, err := readAll(t, c.properties, c.given, turns(c.answers...))
		if items != c.items || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v\nwant %s, %s", name, items, err, c.items, c.want)
		}
	}
}

// TestManyMembers checks that items with very many members do not hide what an answer says about further pages.
func TestManyMembers(t *testing.T) {
	var members []string
	for i := range 3 * maxMembers {
		members = append(members, fmt.Sprintf(`"k%d":{"a":1}`, i))
	}
	many := "{" + strings.Join(members, ",") + "}"
	items, _, err := readAll(t, `"cursor":{"type":"string"}`, `{}`, turns(`{"many":`+many+`,"items":[`+many+`],"meta":{"next_cursor":"b"}}`, `{"items":[2]}`))
	if err != nil || items != "["+many+"][2]" {
		t.Errorf("%d bytes, %v", len(items), err)
	}
}

// TestUnreadable checks what a program is told about a tool whose paging is not recognised.
func TestUnreadable(t *testing.T) {
	r := NewReader("box.list", schema(`"batch_no":{"type":"integer"}`))
	_, _, refused := r.ReadPage(json.RawMessage(`{}`), json.RawMessage(`{"rows":[1],"has_more":true,"meta":{"batches":3}}`))
	if refused == nil || refused.Hint != "read it by hand: call it in a loop and choose the next page yourself; arguments: batch_no; "+
		"fields of the answer: rows, has_more, meta, meta.batches" {
		t.Errorf("%+v", refused)
	}
}

// FuzzReader reads pages of a server that answers anything. The items must be a part of the answer, the arguments must
// keep everything that the program gave, and no page may be asked for twice.
func FuzzReader(f *testing.F) {
	for _, seed := range [][3]string{
		{`{"properties":{"cursor":{"type":"string"}}}`, `{"items":[1],"next_cursor":"b"}`, `{"items":[2],"next_cursor":null}`},
		{`{"properties":{"page":{"type":"integer"}}}`, `{"rows":[1],"pages":3}`, `[]`},
		{`{"properties":{"offset":{"minimum":1}}}`, `{"rows":[{"id":1}],"total":3}`, `{"rows":[{"id":1}],"total":"9"}`},
		{`{"properties":{"starting_after":true}}`, `{"data":[{"id":"a"}],"has_more":true}`, `{"data":[{"id":{}}]}`},
		{`{"properties":{"page":{}}}`, `{"_links":{"next":{"href":"?page=2"}},"x":[1]}`, `{"x":{}}`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, schema, first, second string) {
		if !json.Valid([]byte(first)) || !json.Valid([]byte(second)) {
			return
		}
		const given = `{"kept":{"a":[1,2]},"q":"x"}`
		r := NewReader("box.list", json.RawMessage(schema))
		asked := map[string]bool{}
		for i, answer := range []string{first, second, first, second, second} {
			arguments := r.Arguments(json.RawMessage(given))
			var a map[string]json.RawMessage
			if err := json.Unmarshal(arguments, &a); err != nil {
				t.Fatalf("%s: %v", arguments, err)
			}
			if string(a["kept"]) != `{"a":[1,2]}` || string(a["q"]) != `"x"` {
				t.Fatalf("page %d: %s", i, arguments)
			}
			if asked[string(arguments)] {
				t.Fatalf("page %d is asked for again: %s", i, arguments)
			}
			asked[string(arguments)] = true
			items, more, refused := r.ReadPage(json.RawMessage(given), json.RawMessage(answer))
			if refused != nil {
				return
			}
			if string(items) != "[]" && !bytes.Contains([]byte(answer), items) || !json.Valid(items) || items[0] != '[' {
				t.Fatalf("page %d: %s of %s", i, items, answer)
			}
			if !more {
				return
			}
		}
	})
}
