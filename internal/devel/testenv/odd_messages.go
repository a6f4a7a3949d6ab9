package testenv

import (
	"fmt"
	"strings"
)

// OddMessage is a text that a peer in an MCP connection should not send.
type OddMessage struct{ Name, Text string }

// OddMessages returns malformed messages, messages at a wrong time, and texts that are not messages, for either
// direction and any version of the protocol. A peer that receives one must not end the connection or any other
// request because of it. The arguments are the ids, as JSON, of a running request, of the next request, of an
// answered request, and of initialize. None of the texts cancels or answers the running request.
func OddMessages(running, next, answered, first string) []OddMessage {
	var list []OddMessage
	add := func(name, format string, args ...any) {
		list = append(list, OddMessage{name, fmt.Sprintf(format, args...)})
	}
	addTexts(add)
	addIDs(add, running)
	addCancellations(add, running, next, answered, first)
	addParams(add)
	addBatches(add, next)
	addLargeTexts(add)
	return list
}

type oddAdder func(name, format string, args ...any)

// addTexts adds to the odd messages texts that are not JSON, are JSON but no message, or are in another encoding.
func addTexts(add oddAdder) {
	for _, text := range []string{
		`{}`, `[]`, `7`, `null`, `"x"`, `true`, `-0`, `1e999`, `[[]]`, `[1,2]`, `[null]`, `[{}]`, `nonsense`, `{`, `}`, `[`, `]`, `"`, `{"jsonrpc":"2.0"`, `{} {}`, `{}[]`, `{"a":1,}`, `{'a':1}`, `NaN`,
		`// {}`, `{"jsonrpc":"2.0"}`, `{"":{}}`, `HTTP/1.1 200 OK`, `Content-Length: 20`,
	} {
		add("text "+text, "%s", text)
	}
	ping := `{"jsonrpc":"2.0","id":"odd","method":"ping"}`
	for name, text := range map[string]string{
		"NUL": "\x00", "NUL before": "\x00" + ping, "NUL after": ping + "\x00", "NUL inside": strings.Replace(ping, "ping", "pi\x00ng", 1), "BOM": "\ufeff" + ping, "BOM alone": "\ufeff", "UTF-16": wideText(ping),
		"UTF-16 with BOM": "\xff\xfe" + wideText(ping), "invalid UTF-8": "\xff\xfe\xfd", "invalid method": strings.Replace(ping, "ping", "\xc3\x28", 1), "invalid id": strings.Replace(ping, "odd", "\xed\xa0\x80", 1),
		"overlong": strings.Replace(ping, "ping", "\xc0\xaf", 1), "invalid key": strings.Replace(ping, "id", "i\xff", 1), "CRLF": ping + "\r", "CR inside": strings.ReplaceAll(ping, ",", ",\r"), "tabs": "\t" + strings.ReplaceAll(ping, ",", ",\t"),
		"vertical tab": "\v" + ping, "NEL": "\u0085" + ping, "line separator": ping + "\u2028", "blanks": strings.Repeat(" ", 1000), "empty lines": strings.Repeat("\n\r\n", 300), "escape": "\x1b[2J" + ping, "EOT": "\x04",
		"lone surrogate in id": strings.Replace(ping, "odd", `\ud800`, 1), "lone surrogate in method": strings.Replace(ping, "ping", `\udc00\ud800`, 1), "lone surrogate in key": strings.Replace(ping, `"id"`, `"\ud83d":1,"id"`, 1),
		"escaped NUL in method": strings.Replace(ping, "ping", `\u0000`, 1), "escaped key": strings.Replace(ping, `"id"`, `"\u0069d"`, 1), "other case": strings.ToUpper(ping), "twice in a line": ping + ping,
	} {
		add(name, "%s", text)
	}
}

// wideText returns an ASCII text encoded as UTF-16.
func wideText(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		b.Write([]byte{c, 0})
	}
	return b.String()
}

// addIDs adds to the odd messages requests and responses whose ids are malformed or already in use.
func addIDs(add oddAdder, running string) {
	for _, id := range []string{
		`true`, `false`, `null`, `{}`, `{"id":1}`, `[]`, `[1]`, `1.5`, `1e999`, `-1e999`, `1e-999`, `9007199254740993`, `-9007199254740993`, `18446744073709551616`, `1E3`, `-0`, `-1`, `""`, `"\u0000"`, `"\ud800"`, `01`, `+1`, `.5`,
		strings.Repeat("9", 100_000), `"` + strings.Repeat("i", 100_000) + `"`,
	} {
		short := id[:min(len(id), 20)]
		add("request with id "+short, `{"jsonrpc":"2.0","id":%s,"method":"odd/method"}`, id)
		add("response with id "+short, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	}
	add("id of the running request", `{"jsonrpc":"2.0","id":%s,"method":"odd/method"}`, running)
	add("two ids", `{"jsonrpc":"2.0","id":"odd","id":%s,"method":"odd/method"}`, running)
	for _, answer := range []string{`"error":"no"`, `"error":null`, `"error":{}`, `"error":{"code":"x","message":7}`, `"error":{"code":1e99,"message":null}`, `"result":7,"error":7`, `"result":null`, `"method":"ping","result":{}`, `"Result":{}`} {
		add("stray answer "+answer, `{"jsonrpc":"2.0","id":"stray",%s}`, answer)
		add("answer without id "+answer, `{"jsonrpc":"2.0",%s,"x":1}`, strings.Replace(answer, `"error":{`, `"error":{"data":1,`, 1)+`,"id":[]`)
	}
}

// addCancellations adds to the odd messages cancellations that must not cancel anything.
func addCancellations(add oddAdder, running, next, answered, first string) {
	other := `"` + running + `"` // the same digits as a text, or a text in quotes
	if strings.HasPrefix(running, `"`) {
		other = `[` + running + `]`
	}
	for name, id := range map[string]string{
		"one to come": next, "one that was answered": answered, "initialize": first, "the running one in another type": other, "a list": `[` + running + `]`, "an object": `{"id":` + running + `}`,
		"null": `null`, "true": `true`, "a fraction": `1.5`, "a huge number": `1e999`, "many digits": strings.Repeat("7", 10_000), "nobody": `"nobody"`, "empty": `""`, "a surrogate": `"\ud800"`,
	} {
		add("cancels "+name, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"x"}}`, id)
		add("cancels "+name+" twice", "%[1]s\n%[1]s", fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":{}}}`, id))
	}
	for _, params := range []string{`{}`, `[]`, `null`, `7`, `"x"`, `{"requestID":1}`, `{"reason":"x"}`, `{"_meta":7}`} {
		add("cancels with "+params, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":%s}`, params)
	}
	add("cancels without params", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	add("cancels in another version", `{"jsonrpc":"1.0","method":"notifications/cancelled","params":{"requestId":%s}}`, running)
	add("cancels what is unknown 300 times", "%s", strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}`+"\n", 300))
}

// addParams adds to the odd messages known methods with wrong parameters, as requests and as notifications.
func addParams(add oddAdder) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for _, method := range []string{
		"initialize", "server/discover", "ping", "tools/call", "tools/list", "subscriptions/listen", "logging/setLevel", "completion/complete", "resources/read", "resources/subscribe", "prompts/get", "tasks/get", "tasks/cancel",
		"tasks/result", "elicitation/create", "sampling/createMessage", "roots/list", "rpc.discover", "__proto__", "",
	} {
		for _, params := range []string{
			`null`, `7`, `[]`, `"x"`, `{"_meta":null}`, `{"_meta":7}`, `{"_meta":{"progressToken":{}}}`, `{"name":7,"arguments":[]}`, `{"name":null}`, `{"protocolVersion":7}`, `{"protocolVersion":"9999-99-99","capabilities":[],"clientInfo":null}`,
			`{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}`, `{"_meta":{"io.modelcontextprotocol/protocolVersion":"1999-01-01"}}`, `{"name":"\ud800","uri":"\u0000","taskId":{},"cursor":-1,"level":7}`, deep,
		} {
			add(method+" with "+params[:min(len(params), 60)], `{"jsonrpc":"2.0","id":"odd","method":%q,"params":%s}`, method, params)
		}
		add(method+" without params", `{"jsonrpc":"2.0","id":"odd","method":%q}`, method)
	}
	for _, method := range []string{
		"notifications/initialized", "notifications/progress", "notifications/message", "notifications/tools/list_changed", "notifications/roots/list_changed", "notifications/resources/updated",
		"notifications/elicitation/complete", "notifications/tasks/status", "notifications/subscriptions/acknowledged", "tools/call", "initialize", "notifications/\\u0000",
	} {
		for _, params := range []string{`null`, `7`, `[]`, `{"progressToken":{},"progress":"x"}`, `{"uri":7,"level":[],"data":1e999,"elicitationId":null,"taskId":7}`, deep} {
			add("notification "+method+" with "+params[:min(len(params), 60)], `{"jsonrpc":"2.0","method":"%s","params":%s}`, method, params)
		}
	}
}

// addBatches adds to the odd messages JSON-RPC batches, which the newer versions of MCP do not allow.
func addBatches(add oddAdder, next string) {
	ping := `{"jsonrpc":"2.0","id":"odd","method":"ping"}`
	for name, text := range map[string]string{
		"batch": `[` + ping + `]`, "nested batch": `[[` + ping + `]]`, "open batch": `[` + ping + `,`, "batch with a comma": `[` + ping + `,]`, "batch of two equal ids": `[` + ping + `,` + ping + `]`,
		"batch of initialize": `[{"jsonrpc":"2.0","id":"odd","method":"initialize","params":{}}]`, "batch of all kinds": `[7,null,[],{},` + ping + `,{"jsonrpc":"2.0","id":"odd","result":{}}]`,
		"batch of a cancellation and its request": `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + next + `}}]`, "batch of notifications": `[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`,
		"large batch": `[` + strings.Repeat(ping+",", 5000) + ping + `]`, "batch of nothing": `[` + strings.Repeat("{},", 20_000) + `{}]`, "batch of lists": `[` + strings.Repeat("[],", 20_000) + `[]]`,
	} {
		add(name, "%s", text)
	}
}

// addLargeTexts adds to the odd messages texts that are large or deeply nested.
func addLargeTexts(add oddAdder) {
	const large = 20 << 20
	for name, text := range map[string]string{
		"20 MB without a line end": strings.Repeat("x", large), "20 MB of blanks": strings.Repeat(" ", large), "20 MB of zeros": strings.Repeat("\x00", large), "20 MB of brackets": strings.Repeat("[", large),
		"20 MB in a request":   `{"jsonrpc":"2.0","id":"odd","method":"odd/method","params":{"a":"` + strings.Repeat("a", large) + `"}}`,
		"20 MB in an answer":   `{"jsonrpc":"2.0","id":"stray","result":{"a":"` + strings.Repeat("a", large) + `"}}`,
		"100,000 keys":         `{"jsonrpc":"2.0","id":"odd","method":"odd/method","params":{` + strings.Repeat(`"k":1,`, 100_000) + `"k":2}}`,
		"100,000 open objects": strings.Repeat(`{"a":`, 100_000), "100,000 nested lists": strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000),
		"a wide list in id": `{"jsonrpc":"2.0","method":"ping","id":` + strings.Repeat("[", 900) + strings.Repeat("1,", 4<<20) + "1" + strings.Repeat("]", 900) + `}`,
		"nested in id":      `{"jsonrpc":"2.0","method":"ping","id":` + strings.Repeat(`[`, 1<<20) + strings.Repeat(`]`, 1<<20) + `}`, "method of 1 MB": `{"jsonrpc":"2.0","id":"odd","method":"` + strings.Repeat("m", 1<<20) + `"}`,
		"a number of 1 MB": `{"jsonrpc":"2.0","id":"odd","method":"odd/method","params":{"a":` + strings.Repeat("1", 1<<20) + `}}`, "1 MB of escapes": `{"jsonrpc":"2.0","id":"` + strings.Repeat(`\u0000`, 170_000) + `","method":"odd/method"}`,
	} {
		add(name, "%s", text)
	}
}
