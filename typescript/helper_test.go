package tsc

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

const testAmbient = `
declare var console: { log(...a: any[]): void };
declare const github: typeof import("/servers/github/index");
declare function callMCPTool<T = any>(name: string, args?: object): Promise<T>;
declare module "node:fs/promises" { export function readFile(path: string): Promise<string>; }
declare module "fs" { export * as promises from "node:fs/promises"; }
`

const testServer = `
export interface ListIssuesInput { owner: string; repo: string; state?: "open" | "closed"; perPage?: number }
export interface Issue { number: number; title: string }
export function listIssues(owner: string, repo: string, state?: "open" | "closed", perPage?: number): Promise<Issue[]>;
export function listIssues(input: ListIssuesInput): Promise<Issue[]>;
export interface GetUserInput { name: string }
export function getUser(name: string): Promise<any>;
export function getUser(input: GetUserInput): Promise<any>;
`

func testInput() Input {
	return Input{
		Files: map[string]string{
			"/globals.d.ts":              testAmbient,
			"/servers/github/index.d.ts": testServer,
			"/client.d.ts":               "export declare function callMCPTool<T = any>(name: string, args?: object): Promise<T>;",
		},
		Ambient: []string{"/globals.d.ts"},
	}
}

func mustParse(t testing.TB, c *Compiler, code string, kind Kind) *Source {
	t.Helper()
	src, err := c.Parse(context.Background(), code, kind)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return src
}

func mustCheck(t testing.TB, c *Compiler, code string, kind Kind) *Result {
	t.Helper()
	src := mustParse(t, c, code, kind)
	for _, d := range src.Errors() {
		t.Fatalf("syntax error at %d:%d: %s\n%s", d.Line, d.Column, d.Message, code)
	}
	result, err := c.Check(context.Background(), src, testInput())
	if err != nil {
		t.Fatalf("Check: %v\n%s", err, code)
	}
	return result
}

func describe(diagnostics []Diagnostic) string {
	var b strings.Builder
	for _, d := range diagnostics {
		fmt.Fprintf(&b, "%d:%d TS%d %s", d.Line, d.Column, d.Code, d.Message)
		for name, set := range map[string]bool{"erased": d.Erased, "open": d.Open, "widened": d.Widened} {
			if set {
				b.WriteString(" [" + name + "]")
			}
		}
		if d.Argument != nil {
			b.WriteString(" [argument of " + d.Argument.Name + "]")
		}
		if d.Member != nil {
			b.WriteString(" [member " + d.Member.Name + "]")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
