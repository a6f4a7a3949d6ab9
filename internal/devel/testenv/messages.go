package testenv

import "strings"

// MakeMessages returns lines of JSON-RPC messages, most of them malformed, for fuzz tests. Each byte of choices
// decides one choice. The messages are those that a peer in an MCP connection may send, in either direction and in
// any version of the protocol.
func MakeMessages(choices []byte) string {
	g := messageGrammar{choices: choices}
	var lines []string
	for len(g.choices) > 0 && len(lines) < 50 {
		lines = append(lines, g.makeLine())
	}
	return strings.Join(lines, "\n")
}

// messageGrammar generates texts from the choices of a fuzzer. When no choices are left, it always takes the first
// alternative.
type messageGrammar struct {
	choices []byte
}

func (g *messageGrammar) chooseIndex(n int) int {
	if len(g.choices) == 0 {
		return 0
	}
	c := int(g.choices[0]) % n
	g.choices = g.choices[1:]
	return c
}

func (g *messageGrammar) pickText(texts ...string) string { return texts[g.chooseIndex(len(texts))] }

func (g *messageGrammar) makeLine() string {
	switch g.chooseIndex(8) {
	case 6:
		var messages []string
		for range g.chooseIndex(4) {
			messages = append(messages, g.makeMessage())
		}
		return "[" + strings.Join(messages, ",") + "]"
	case 7:
		return g.pickText(`[`, `{`, `nul`, "\x00", `{}{}`, `{"a":1,}`, "\xff\xfe", ` `, `[[[]]]`, `"`, `{"jsonrpc":"2.0"}`, `NaN`)
	}
	return g.makeMessage()
}

// makeMessage returns an object with some of the members of a JSON-RPC message, or rarely another JSON value.
func (g *messageGrammar) makeMessage() string {
	if g.chooseIndex(16) == 15 {
		return g.makeValue(0)
	}
	members := []string{`"jsonrpc":` + g.pickText(`"2.0"`, `"2.0"`, `"2.0"`, `"2.0"`, `"1.0"`, `2.0`, `null`, `""`)}
	if g.chooseIndex(4) > 0 {
		members = append(members, `"id":`+g.makeID())
	}
	if g.chooseIndex(4) > 0 {
		members = append(members, `"method":`+g.makeMethod(), `"params":`+g.makeParams())
	} else {
		members = append(
			members,
			g.pickText(
				`"result":`, `"error":`, `"result":{"resultType":"complete"},"error":`, `"Result":`,
				`"error":{"code":-32042,"message":"m","data":{}},"x":`,
			)+g.makeValue(0),
		)
	}
	if g.chooseIndex(8) == 7 {
		members = append(members, g.pickText(`"id":1`, `"method":"ping"`, `"jsonrpc":"2.0"`, `"":0`, `"ID":7`, `"result":{}`))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g *messageGrammar) makeID() string {
	return g.pickText(
		`1`, `2`, `3`, `"a"`, `"1"`, `0`, `-1`, `1.0`, `1.5`, `1e3`, `1e999`, `9007199254740993`, `null`, `true`, `{}`,
		`[1]`, `""`, `"\u0000"`,
	)
}

func (g *messageGrammar) makeMethod() string {
	return g.pickText(`"tools/call"`, `"tools/list"`, `"ping"`, `"initialize"`, `"server/discover"`, `"notifications/cancelled"`, `"notifications/initialized"`, `"notifications/progress"`, `"notifications/tools/list_changed"`,
		`"notifications/message"`, `"notifications/elicitation/complete"`, `"subscriptions/listen"`, `"notifications/subscriptions/acknowledged"`, `"resources/list"`, `"resources/read"`, `"resources/subscribe"`, `"prompts/get"`, `"completion/complete"`,
		`"logging/setLevel"`, `"tasks/get"`, `"tasks/list"`, `"tasks/cancel"`, `"tasks/update"`, `"elicitation/create"`, `"sampling/createMessage"`, `"roots/list"`, `""`, `7`, `null`, `[]`, `"x"`)
}

func (g *messageGrammar) makeParams() string {
	if g.chooseIndex(6) == 5 {
		return g.makeValue(0)
	}
	members := []string{`"_meta":` + g.pickText(
		`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`, `{}`, `null`, `7`,
		`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`,
		`{"io.modelcontextprotocol/protocolVersion":"1999-01-01"}`, `{"io.modelcontextprotocol/protocolVersion":7}`, `{"progressToken":1}`, `{"progressToken":{}}`, `{"io.modelcontextprotocol/clientCapabilities":7}`)}
	for range g.chooseIndex(4) {
		members = append(members, g.pickText(`"name":"execute_code"`, `"name":"call_tool"`, `"name":"get_execution_stats"`, `"name":7`, `"arguments":{"code":"return 1"}`, `"arguments":`+
			g.makeValue(
				0,
			), `"requestId":`+g.makeID(), `"task":`+g.makeValue(0),
			`"taskId":`+g.makeValue(
				0,
			), `"requestState":`+g.makeValue(
				0,
			), `"inputResponses":`+g.makeValue(
				0,
			), `"protocolVersion":"2025-11-25"`, `"capabilities":`+g.makeValue(
				0,
			), `"uri":"x:y"`, `"cursor":`+g.makeValue(0), `"level":`+g.makeValue(0),
			`"progressToken":`+g.makeID(), `"progress":`+g.makeValue(
				0,
			), `"notifications":`+g.makeValue(
				0,
			), `"message":"m"`, `"requestedSchema":`+g.makeValue(0), `"mode":"url"`, `"elicitationId":`+g.makeValue(0), `"data":`+g.makeValue(0)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g *messageGrammar) makeValue(depth int) string {
	switch n := g.chooseIndex(14); {
	case n == 12 && depth < 4:
		return "[" + g.makeValue(depth+1) + "," + g.makeValue(depth+1) + "]"
	case n == 13 && depth < 4:
		return `{` + g.pickText(
			`"a":`, `"type":`, `"content":`, `"isError":`, `"structuredContent":`, `"_meta":`, `"properties":`, `"tools":`,
			`"code":`, `"data":`,
		) + g.makeValue(depth+1) + `}`
	}
	return g.pickText(`{}`, `[]`, `null`, `true`, `0`, `-1`, `1e400`, `"x"`, `""`, `"\ud800"`, `{"content":[{"type":"text","text":"t"}]}`, `{"code":-32000,"message":"m"}`, `{"code":"x"}`, `{"content":[null,7,{"type":"x"}]}`,
		strings.Repeat("[", 1500)+strings.Repeat("]", 1500), `"2026-07-28"`)
}
