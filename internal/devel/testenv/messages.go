package testenv

import "strings"

// Messages makes lines of JSON-RPC messages, most of them malformed, from the choices of a fuzzer: each byte is a
// choice. The messages are those that a peer of an MCP connection may send, in either direction and in
// any version of the protocol.
func Messages(choices []byte) string {
	g := grammar{choices: choices}
	var lines []string
	for len(g.choices) > 0 && len(lines) < 50 {
		lines = append(lines, g.line())
	}
	return strings.Join(lines, "\n")
}

// grammar makes texts. When it has no choices left, it takes the first alternative everywhere.
type grammar struct {
	choices []byte
}

func (g *grammar) choose(n int) int {
	if len(g.choices) == 0 {
		return 0
	}
	c := int(g.choices[0]) % n
	g.choices = g.choices[1:]
	return c
}

func (g *grammar) pick(texts ...string) string { return texts[g.choose(len(texts))] }

func (g *grammar) line() string {
	switch g.choose(8) {
	case 6:
		var messages []string
		for range g.choose(4) {
			messages = append(messages, g.message())
		}
		return "[" + strings.Join(messages, ",") + "]"
	case 7:
		return g.pick(`[`, `{`, `nul`, "\x00", `{}{}`, `{"a":1,}`, "\xff\xfe", ` `, `[[[]]]`, `"`, `{"jsonrpc":"2.0"}`, `NaN`)
	}
	return g.message()
}

// message makes an object with some of the members of a message, or another value.
func (g *grammar) message() string {
	if g.choose(16) == 15 {
		return g.value(0)
	}
	members := []string{`"jsonrpc":` + g.pick(`"2.0"`, `"2.0"`, `"2.0"`, `"2.0"`, `"1.0"`, `2.0`, `null`, `""`)}
	if g.choose(4) > 0 {
		members = append(members, `"id":`+g.id())
	}
	if g.choose(4) > 0 {
		members = append(members, `"method":`+g.method(), `"params":`+g.params())
	} else {
		members = append(members, g.pick(`"result":`, `"error":`, `"result":{"resultType":"complete"},"error":`, `"Result":`, `"error":{"code":-32042,"message":"m","data":{}},"x":`)+g.value(0))
	}
	if g.choose(8) == 7 {
		members = append(members, g.pick(`"id":1`, `"method":"ping"`, `"jsonrpc":"2.0"`, `"":0`, `"ID":7`, `"result":{}`))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g *grammar) id() string {
	return g.pick(`1`, `2`, `3`, `"a"`, `"1"`, `0`, `-1`, `1.0`, `1.5`, `1e3`, `1e999`, `9007199254740993`, `null`, `true`, `{}`, `[1]`, `""`, `"\u0000"`)
}

func (g *grammar) method() string {
	return g.pick(`"tools/call"`, `"tools/list"`, `"ping"`, `"initialize"`, `"server/discover"`, `"notifications/cancelled"`, `"notifications/initialized"`, `"notifications/progress"`, `"notifications/tools/list_changed"`,
		`"notifications/message"`, `"notifications/elicitation/complete"`, `"subscriptions/listen"`, `"notifications/subscriptions/acknowledged"`, `"resources/list"`, `"resources/read"`, `"resources/subscribe"`, `"prompts/get"`, `"completion/complete"`,
		`"logging/setLevel"`, `"tasks/get"`, `"tasks/list"`, `"tasks/cancel"`, `"tasks/update"`, `"elicitation/create"`, `"sampling/createMessage"`, `"roots/list"`, `""`, `7`, `null`, `[]`, `"x"`)
}

func (g *grammar) params() string {
	if g.choose(6) == 5 {
		return g.value(0)
	}
	members := []string{`"_meta":` + g.pick(
		`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`, `{}`, `null`, `7`,
		`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`,
		`{"io.modelcontextprotocol/protocolVersion":"1999-01-01"}`, `{"io.modelcontextprotocol/protocolVersion":7}`, `{"progressToken":1}`, `{"progressToken":{}}`, `{"io.modelcontextprotocol/clientCapabilities":7}`)}
	for range g.choose(4) {
		members = append(members, g.pick(`"name":"execute_code"`, `"name":"call_tool"`, `"name":"get_execution_stats"`, `"name":7`, `"arguments":{"code":"return 1"}`, `"arguments":`+g.value(0), `"requestId":`+g.id(), `"task":`+g.value(0),
			`"taskId":`+g.value(0), `"requestState":`+g.value(0), `"inputResponses":`+g.value(0), `"protocolVersion":"2025-11-25"`, `"capabilities":`+g.value(0), `"uri":"x:y"`, `"cursor":`+g.value(0), `"level":`+g.value(0),
			`"progressToken":`+g.id(), `"progress":`+g.value(0), `"notifications":`+g.value(0), `"message":"m"`, `"requestedSchema":`+g.value(0), `"mode":"url"`, `"elicitationId":`+g.value(0), `"data":`+g.value(0)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g *grammar) value(depth int) string {
	switch n := g.choose(14); {
	case n == 12 && depth < 4:
		return "[" + g.value(depth+1) + "," + g.value(depth+1) + "]"
	case n == 13 && depth < 4:
		return `{` + g.pick(`"a":`, `"type":`, `"content":`, `"isError":`, `"structuredContent":`, `"_meta":`, `"properties":`, `"tools":`, `"code":`, `"data":`) + g.value(depth+1) + `}`
	}
	return g.pick(`{}`, `[]`, `null`, `true`, `0`, `-1`, `1e400`, `"x"`, `""`, `"\ud800"`, `{"content":[{"type":"text","text":"t"}]}`, `{"code":-32000,"message":"m"}`, `{"code":"x"}`, `{"content":[null,7,{"type":"x"}]}`,
		strings.Repeat("[", 1500)+strings.Repeat("]", 1500), `"2026-07-28"`)
}
