package core

import (
	"fmt"
	"strings"
)

// Scopes lists the scopes with which a person can approve the question, narrowest first.
func (q Question) Scopes() []ApprovalScope {
	switch {
	case q.HasScopes():
		return []ApprovalScope{ScopeOnce, ScopeRun, ScopeAlways}
	case q.Start && q.effectsTool() != "" && q.Crosses == "":
		return []ApprovalScope{ScopeOnce, ScopeEach, ScopeRun, ScopeAlways}
	case q.Start:
		return []ApprovalScope{ScopeOnce, ScopeEach, ScopeRun}
	}
	return []ApprovalScope{ScopeOnce}
}

// ScopeTitle says in a few words which calls an approval of the question with this scope covers.
func (q Question) ScopeTitle(s ApprovalScope) string {
	if !q.Start {
		return map[ApprovalScope]string{
			ScopeOnce: "Approve once", ScopeRun: "Approve calls of this tool for the rest of this run",
			ScopeAlways: "Always approve this tool for arguments with the same names and types",
		}[s]
	}
	tools := q.effectsTool()
	if tools == "" {
		tools = "these tools"
	}
	return map[ApprovalScope]string{
		ScopeOnce:   fmt.Sprintf("Approve these %d calls", len(q.Effects)),
		ScopeEach:   "Start the program, and ask me about each call",
		ScopeRun:    "Approve these calls, and all further calls of " + tools + " in this run",
		ScopeAlways: "Approve these calls, and always approve " + tools + " for arguments with the same names and types",
	}[s]
}

// startLine returns one line of text that describes the calls that a program is expected to make.
func (q Question) startLine() string {
	if tool := q.effectsTool(); tool != "" && len(q.Effects) == 1 {
		return fmt.Sprintf("run a program that calls %s (%s)", tool, q.Effects[0].Effect)
	}
	return "run a program in which it will " + q.batchLine()
}

// CountCalls returns how many calls of a tool the question lists.
func (q Question) CountCalls(server, tool string) (n int) {
	for _, e := range q.Effects {
		if e.Server == server && e.Tool == tool {
			n++
		}
	}
	return n
}

// LeastCalls returns the smallest limit on calls with which the question can be approved: the largest number of calls of
// one tool that it lists, but at least 1.
func (q Question) LeastCalls() int {
	least := 1
	for _, e := range q.Effects {
		least = max(least, q.CountCalls(e.Server, e.Tool))
	}
	return least
}

// LeastCalls returns the smallest limit on calls with which the request can be approved.
func (a Approval) LeastCalls() int { return max(a.Count, a.Question.LeastCalls()) }

// JoinScopes returns the names of scopes, separated by commas.
func JoinScopes(scopes []ApprovalScope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
