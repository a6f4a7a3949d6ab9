package tsc
import ("testing";"context";"fmt";"os";"time")
const ambientT = `declare var console:{log(...a:any[]):void};
declare const github: typeof import("/servers/github/index");
declare module "node:fs/promises" { export function readFile(p:string):Promise<string>; }
declare module "fs" { export * as promises from "node:fs/promises"; }
declare function callMCPTool<T=any>(n:string,a?:object):Promise<T>;
`
const ghT = `export interface ListIssuesInput { owner: string; repo: string; state?: "open"|"closed"; per?: number }
export interface Issue { number: number; title: string }
/** list */
export function listIssues(owner: string, repo: string, state?: "open"|"closed", per?: number): Promise<Issue[]>;
export function listIssues(input: ListIssuesInput): Promise<Issue[]>;
export interface GetUserInput { name: string }
export function getUser(name: string): Promise<any>;
export function getUser(input: GetUserInput): Promise<any>;
`
func in() Input { return Input{Files: map[string]string{"/globals.d.ts":ambientT,"/servers/github/index.d.ts":ghT,"/client.d.ts":"export declare function callMCPTool<T=any>(n:string,a?:object):Promise<T>;"}, Ambient: []string{"/globals.d.ts"}} }
func TestExplore(t *testing.T) {
	c := New(Limits{})
	b, err := os.ReadFile(os.Getenv("X"))
	if err != nil { t.Skip() }
	k := TypeScript
	if os.Getenv("JS") != "" { k = JavaScript }
	for i := 0; i < 5; i++ {
	s := time.Now()
	src, err := c.Parse(context.Background(), string(b), k)
	if err != nil { t.Fatal(err) }
	d1 := time.Since(s)
	if len(src.Errors())>0 { for _, d := range src.Errors() { fmt.Printf("SYN %+v\n", d) }; return }
	r, err := c.Check(context.Background(), src, in())
	d2 := time.Since(s)
	if err != nil { t.Fatal(err) }
	fmt.Println(d1, d2)
	if i == 0 {
	for _, d := range r.Diagnostics { fmt.Printf("TS%d %d:%d %q erased=%v arg=%v member=%v filled=%v widened=%v\n", d.Code, d.Line, d.Column, d.Message, d.Erased, d.Argument, d.Member, d.Filled, d.Widened) }
	fmt.Println(r.JavaScript)
	f := src.Facts()
	for n, u := range f.Globals { fmt.Printf("free %s whole=%v %v\n", n, u.Whole, u.Members) }
	for _, u := range f.Imports { fmt.Printf("import %+v\n", u) }
	for _, u := range f.Calls { fmt.Printf("call %+v\n", u) }
	fmt.Println("unknown", f.Unknown)
	}
	}
}
