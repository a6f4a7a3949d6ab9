package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// replayed is an MCP server for tests whose tools and answers come from a file. It appends each call to a log:
//
//	replayed FILE LOG
//
// The file has the form {"tools": […], "answers": {"tool": value}}. A tool with a list under "turns" gives the next
// answer of the list at each call, and repeats the last one. A tool under "pages" answers by the value of the argument
// that selects a page: cursor, starting_after, page or offset. The answer under the key "" is its first page.
// An answer {"rows": N} is expanded to an array of N objects with fields such as id, name, email, phone and company.
// An answer {"blob": …, "mimeType": …} is sent as a resource with these bytes.
func replayed() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var stock struct {
		Tools   json.RawMessage
		Answers map[string]json.RawMessage
		Turns   map[string][]json.RawMessage
		Pages   map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &stock); err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"replayed","version":"1"}}`
		case "tools/list":
			result = `{"tools":` + string(stock.Tools) + `}`
		case "tools/call":
			note(os.Args[2], m.Params.Name+" "+string(m.Params.Arguments))
			answer := stock.Answers[m.Params.Name]
			if turns := stock.Turns[m.Params.Name]; len(turns) > 0 {
				answer = turns[0]
				stock.Turns[m.Params.Name] = turns[min(1, len(turns)-1):]
			}
			if pages := stock.Pages[m.Params.Name]; pages != nil {
				answer = pages[pageAsked(m.Params.Arguments)]
			}
			result = asContent(answer)
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, strings.ReplaceAll(result, "\n", " "))
	}
}

// pageAsked returns the value of the argument that selects a page in a call, as text.
func pageAsked(arguments json.RawMessage) string {
	var a map[string]any
	_ = json.Unmarshal(arguments, &a)
	for _, name := range []string{"cursor", "starting_after", "page", "offset"} {
		if value, ok := a[name]; ok {
			return fmt.Sprint(value)
		}
	}
	return ""
}

// asContent returns a tool result that contains an answer as text. It expands an answer of the form {"rows": N}.
func asContent(answer json.RawMessage) string {
	var made struct {
		Rows           int
		Blob, MIMEType string
	}
	_ = json.Unmarshal(answer, &made)
	if made.Blob != "" {
		return fmt.Sprintf(`{"content":[{"type":"resource","resource":{"uri":"file:///x","mimeType":%q,"blob":%q}}]}`, made.MIMEType, made.Blob)
	}
	if made.Rows > 0 {
		var rows []string
		for i := range made.Rows {
			rows = append(rows, fmt.Sprintf(`{"id":"r%[1]d","salesforceId":"00Q%03[1]d","name":"Peter Weiss","email":"person%[1]d@corp.example","phone":"+1 555-201-%04[1]d","company":"Corp %[1]d","Status":"pending","Amount":%[2]d}`, i, 100*i))
		}
		answer = json.RawMessage("[" + strings.Join(rows, ",") + "]")
		if strings.Contains(os.Args[1], "sheet") {
			answer = json.RawMessage(`{"rows":` + string(answer) + `}`)
		}
	}
	if len(answer) == 0 {
		answer = json.RawMessage(`{"ok":true}`)
	}
	text, err := json.Marshal(string(answer))
	if err != nil {
		panic(err)
	}
	return `{"content":[{"type":"text","text":` + string(text) + `}]}`
}

func note(file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, line)
	_ = f.Close()
}
