package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/mcp/client"
	"retort/internal/mcp/server"
	"retort/internal/tokens"
)

// ServerInfo describes the state of one server.
type ServerInfo struct {
	Name           string   `json:"name"`
	State          string   `json:"state"`
	Tools          int      `json:"tools"`
	Tokens         int      `json:"tokens"`            // of the definitions of its tools
	Learned        int      `json:"learned,omitempty"` // number of tools whose undeclared result types were learned
	Category       string   `json:"category,omitempty"`
	Cached         bool     `json:"cached,omitempty"` // the tools are known only from an earlier run
	Error          *Error   `json:"error,omitempty"`
	Implementation string   `json:"implementation,omitempty"`
	Version        string   `json:"version,omitempty"`
	Protocol       string   `json:"protocol,omitempty"`
	ConnectMS      float64  `json:"connect_ms,omitempty"`
	LatencyMS      float64  `json:"latency_ms,omitempty"`
	Changed        []string `json:"changed,omitempty"`  // tools that differ from their trusted definitions
	Flagged        []string `json:"flagged,omitempty"`  // tools with suspicious content in their definitions
	Withheld       []string `json:"withheld,omitempty"` // flagged tools that models are not offered
	Problems       []string `json:"problems,omitempty"`
	Stderr         []string `json:"stderr,omitempty"` // last lines of its standard error
}

// OwnToolCost returns the number of Retort's own tools, and the tokens that their definitions take in a model's
// context.
func OwnToolCost() (count, size int, err error) {
	list, err := server.ToolList(server.Options{Sandboxes: config.SandboxNames()})
	if err != nil {
		return 0, 0, err
	}
	text, err := json.Marshal(list)
	if err != nil {
		return 0, 0, err
	}
	return len(list.Tools), tokens.CountTokens(string(text)), nil
}

// Stats is the result of the MCP tool get_execution_stats.
type Stats struct {
	Servers int `json:"servers"`
	Ready   int `json:"ready"`
	Tools   int `json:"tools"`
	Tokens  int `json:"definition_tokens"` // of the definitions of all tools
	// Learned counts the tools whose undeclared result types were learned.
	Learned    int                  `json:"learned_types"`
	Skills     int                  `json:"skills"`
	Executions tokens.LedgerSummary `json:"executions"`         // since this engine was opened
	Recorded   *RecordedTotals      `json:"recorded,omitempty"` // by all engines, from the audit log
	// Kept says how much the workspace of the session holds or, without a session, that of the default session.
	Kept  core.WorkspaceUsage `json:"kept"`
	Tasks *TaskCounts         `json:"tasks,omitempty"` // jobs in the queue, if this engine has opened it
	// Outstanding explains which changes to the configuration files are not in force; "" if all are.
	Outstanding string `json:"outstanding,omitempty"`
	// ActiveTasks counts the tasks that are running. MaxConcurrentTasks is the largest number of queued tasks that
	// run at once.
	ActiveTasks        int `json:"activeTasks"`
	MaxConcurrentTasks int `json:"maxConcurrentTasks"`
}

// Warnings returns the warnings about the configuration, as it was when the engine was opened.
func (e *Engine) Warnings() []string { return e.config.Warnings }

// Outstanding explains which changes to the configuration files are not in force: a file is broken, or a setting
// takes effect at the next start. It returns "" if everything is in force.
func (e *Engine) Outstanding() string { return e.background.reloader.outstanding() }

// WaitForServers waits until the named servers, or all if none are named, have answered or failed once.
func (e *Engine) WaitForServers(ctx context.Context, servers ...string) {
	e.tools.live.WaitForListing(ctx, servers...)
}

// PendingServers returns the names of the servers that have neither answered nor failed yet.
func (e *Engine) PendingServers() []string { return e.tools.live.PendingServers() }

// Toolset returns the tools that programs can see now.
func (e *Engine) Toolset() *core.Toolset { return e.pipeline.Toolset() }

// Stats returns a Stats with the numbers of servers, tools and executions. The executions are those of one session
// or, if session is empty, of all.
func (e *Engine) Stats(_ context.Context, session string) any {
	saved, _ := e.pipeline.Skills.ListSkills()
	s := Stats{
		Executions: e.pipeline.Ledger.SummaryOf(e.pipeline.AccountName(session)), Recorded: e.recordedTotals(session), Skills: len(saved),
		Kept: e.pipeline.WorkspaceUsage(sessionName(session)), Tasks: e.jobs.queue.countJobs(e.pipeline.Policy.Principal()),
	}
	s.Executions.Session, s.Outstanding = session, e.Outstanding()
	s.ActiveTasks, s.MaxConcurrentTasks = e.jobs.countRunning(e.pipeline.Policy.Principal()), e.config.Settings.MaxTasks
	for _, server := range e.ListServers() {
		s.Servers++
		s.Tools += server.Tools
		s.Tokens += server.Tokens
		s.Learned += server.Learned
		if server.State == "ready" {
			s.Ready++
		}
	}
	return s
}

// ListServers describes every server that is configured or statically defined.
func (e *Engine) ListServers() []ServerInfo {
	tools := e.Toolset()
	var infos []ServerInfo
	configured := map[string]bool{}
	for _, name := range e.tools.pool.ServerNames() {
		configured[name] = true
		infos = append(infos, e.describeServer(tools, name))
	}
	for _, s := range tools.Servers {
		if !configured[s.Name] {
			infos = append(infos, ServerInfo{
				Name: s.Name, State: "static", Tools: len(s.Tools), Tokens: e.tools.live.ServerTokens(s), Category: s.Category,
			})
		}
	}
	return infos
}

func (e *Engine) describeServer(tools *core.Toolset, name string) ServerInfo {
	status := maskStatus(e.secrets, e.tools.pool.StatusOf(name))
	info := ServerInfo{
		Name: name, State: string(status.State), Error: e.tools.live.ProblemOf(name), Implementation: status.Name, Version: status.Version,
		Protocol: status.Protocol, ConnectMS: status.Connect.Seconds() * 1000, LatencyMS: status.Latency.Seconds() * 1000,
		Stderr: status.Stderr, Problems: e.describeProblems(name, status),
	}
	if s, ok := tools.FindServer(name); ok && s.Name == name {
		for _, t := range s.Tools {
			if t.Learned != nil {
				info.Learned++
			}
		}
		info.Tools, info.Tokens, info.Category, info.Cached = len(s.Tools), e.tools.live.ServerTokens(s), s.Category, s.Cached
	}
	info.Changed, info.Flagged, info.Withheld = e.changedAndFlagged(name)
	return info
}

// describeProblems describes what is unexpected in a server's definitions and output.
func (e *Engine) describeProblems(server string, status client.ServerStatus) []string {
	var all []string
	if s, ok := e.tools.catalog.Toolset().FindServer(server); ok && s.Name == server {
		for _, f := range s.Flags {
			all = append(all, "its "+f.String())
		}
	}
	for _, p := range e.tools.catalog.ListProblems() {
		if p.Server == server {
			all = append(all, p.String())
		}
	}
	if n := status.Rubbish.Lines; n > 0 {
		all = append(
			all,
			fmt.Sprintf("%d lines on its standard output are not messages, such as: %s", n, strings.Join(status.Rubbish.Samples, " | ")),
		)
	}
	return all
}
