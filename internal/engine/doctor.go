package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"retort/internal/core"
	"retort/internal/doctor"
	"retort/internal/mcp/client"
	"retort/internal/sandbox"
)

// Diagnosis holds the results that retort doctor prints.
type Diagnosis struct {
	OK        bool                   `json:"ok"` // nothing is broken
	Version   string                 `json:"version"`
	Home      string                 `json:"home"`
	Files     []string               `json:"files"`
	Warnings  []string               `json:"warnings,omitempty"`
	Machine   []doctor.CheckResult   `json:"machine"`
	Clients   []doctor.CheckResult   `json:"clients,omitempty"` // whether the files of MCP clients start this program
	Sandbox   string                 `json:"sandbox"`           // setting sandboxMode
	Sandboxes []sandbox.Capabilities `json:"sandboxes"`
	Runtimes  map[string]string      `json:"runtimes"` // versions of the installed runtimes
	Servers   []ServerDiagnosis      `json:"servers"`
}

// ServerDiagnosis describes the state of one server.
type ServerDiagnosis struct {
	ServerInfo
	OK        bool   `json:"ok"`
	Transport string `json:"transport,omitempty"`
	// Era is the generation of the server's protocol version: "handshake", or "stateless" since 2026-07-28.
	Era       string                `json:"era,omitempty"`
	Login     string                `json:"login,omitempty"`
	Isolation string                `json:"isolation,omitempty"`
	Restarts  int                   `json:"restarts,omitempty"`
	Cause     *doctor.FailureCause  `json:"cause,omitempty"`   // why it does not work; nil: it works
	Remarks   []doctor.FailureCause `json:"remarks,omitempty"` // problems that do not keep it from working
}

const (
	slowAnswer    = 2 * time.Second
	recordTimeout = 10 * time.Second
)

// Doctor waits until the named servers, or all if none are named, have answered or failed, but no longer than
// patience. It then reports what works on this machine and what does not. machine holds the results of
// admin.ExamineMachine.
func (e *Engine) Doctor(ctx context.Context, machine []doctor.CheckResult, patience time.Duration, servers ...string) (Diagnosis, error) {
	for _, name := range servers {
		if err := e.checkServerName(name); err != nil {
			return Diagnosis{}, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e.WaitForServers(limited, servers...)
	d := Diagnosis{
		OK: true, Version: Version, Home: e.config.Home, Files: e.config.Files, Warnings: e.config.Warnings, Machine: machine,
		Sandbox: string(e.config.Settings.SandboxMode), Sandboxes: e.programs.sandboxes.Capabilities(),
	}
	d.Runtimes = e.runtimeVersions(ctx, d.Sandboxes)
	for _, s := range e.ListServers() {
		if len(servers) == 0 || slices.Contains(servers, s.Name) {
			d.Servers = append(d.Servers, e.diagnose(s, patience))
		}
	}
	for _, s := range d.Servers {
		d.OK = d.OK && s.OK
	}
	for _, s := range d.Sandboxes {
		if s.Name != d.Sandbox && (d.Sandbox != sandbox.Auto || s.Strength > sandbox.Process) {
			continue // nobody has asked for it
		}
		d.OK = d.OK && s.Unavailable == nil && len(s.NoCommands) == 0 &&
			!slices.ContainsFunc(s.Missing, func(m sandbox.MissingRuntime) bool { return m.Runtime == e.config.Settings.Runtime })
	}
	for _, c := range machine {
		d.OK = d.OK && c.Level != doctor.Broken
	}
	return d, nil
}

// checkServerName returns an error unless a server has this name. The hint names the most similar one.
func (e *Engine) checkServerName(name string) error {
	var known []string
	for _, s := range e.ListServers() {
		known = append(known, s.Name)
	}
	if slices.Contains(known, name) {
		return nil
	}
	err := core.Errorf(core.KindInvalidArguments, "retort.doctor", "there is no server %q", name)
	if near := core.NearestNames(name, known, 1); len(near) > 0 {
		return err.WithHint("did you mean %s?", near[0])
	}
	return err.WithHint("the configured servers are %s", strings.Join(known, ", "))
}

func (e *Engine) diagnose(info ServerInfo, waited time.Duration) ServerDiagnosis {
	d := ServerDiagnosis{ServerInfo: info, OK: true}
	servers := e.activeConfig().servers
	i := slices.IndexFunc(servers, func(s Server) bool { return s.Name == info.Name })
	if i < 0 {
		return d // it is static
	}
	spec, status := servers[i], e.tools.pool.StatusOf(info.Name)
	d.Transport, d.Restarts, d.Isolation, d.Login = status.Transport, status.Restarts, string(status.Isolation), e.describeLogin(spec)
	if d.Era = "handshake"; status.Protocol >= "2026-07-28" {
		d.Era = "stateless"
	}
	if status.Protocol == "" {
		d.Era = ""
	}
	pending := info.Error == nil && status.State != client.StateReady && status.State != client.StateIdle
	if info.Error != nil || pending {
		cause := e.maskCause(doctor.ExplainFailure(newSymptom(spec, status, info, waited, pending)))
		d.OK, d.Cause, d.Stderr = false, &cause, removeRepeats(info.Stderr)
		return d
	}
	for _, r := range findRemarks(info, status) {
		d.Remarks = append(d.Remarks, e.maskCause(r))
	}
	return d
}

// maskCause returns c without secrets, because the texts of a cause may quote a command line or an address.
func (e *Engine) maskCause(c doctor.FailureCause) doctor.FailureCause {
	c.Words, c.Mend = e.secrets.MaskString(c.Words), e.secrets.MaskString(c.Mend)
	return c
}

// newSymptom collects what is known about a server that does not work. waited is the time for which Doctor has
// waited for the server. pending says that the server has not answered in that time.
func newSymptom(spec Server, status client.ServerStatus, info ServerInfo, waited time.Duration, pending bool) doctor.FailureSymptom {
	s := doctor.FailureSymptom{
		Server: spec.Name, Command: spec.Command, Args: spec.Args, Dir: spec.Dir, URL: spec.URL, Login: spec.Auth != nil,
		Stderr: removeRepeats(info.Stderr), Rubbish: status.Rubbish.Samples, Waited: waited, Pending: pending,
	}
	if info.Error != nil {
		s.Message, s.Hint, s.Err = info.Error.Message, info.Error.Hint, info.Error
	}
	if e := status.LastError; e != nil {
		s.Err = errors.Join(s.Err, e)
		s.Message = cmp.Or(s.Message, e.Message)
	}
	if spec.Err != nil {
		s.Message = spec.Err.Error()
	}
	s.Status = client.HTTPStatusOf(s.Err)
	return s
}

// removeRepeats returns the output lines of a server without repetitions. They occur if the server is restarted
// repeatedly.
func removeRepeats(lines []string) (once []string) {
	for _, line := range lines {
		if !slices.Contains(once, line) {
			once = append(once, line)
		}
	}
	return once
}

// findRemarks returns the problems of a server that works in spite of them, such as slow answers.
func findRemarks(info ServerInfo, status client.ServerStatus) (all []doctor.FailureCause) {
	add := func(id, mend, words string, args ...any) {
		all = append(all, doctor.FailureCause{ID: id, Words: fmt.Sprintf(words, args...), Mend: mend})
	}
	if len(info.Changed) > 0 {
		add("changed_definitions", fmt.Sprintf("run retort tools --changed %s, then retort tools --trust %s", info.Name, info.Name),
			"%s has changed since it was trusted", strings.Join(info.Changed, ", "))
	}
	if len(info.Flagged) > 0 {
		add(
			"flagged_definitions", "retort describe "+info.Name+"."+info.Flagged[0],
			"its definitions contain suspicious text: %s", strings.Join(info.Flagged, ", "),
		)
	}
	if n := status.Rubbish.Lines; n > 0 {
		add(
			"stdout_rubbish", "configure it to log to standard error: see its own settings",
			"it writes lines that are not messages to standard output (%d lines)", n,
		)
	}
	if status.Latency > slowAnswer {
		add("slow_answers", "", "it answers slowly: %.1f s", status.Latency.Seconds())
	}
	if info.State == string(client.StateReady) && info.Tools == 0 {
		add("no_tools", "", "it offers no tools")
	}
	return all
}

// describeLogin describes how Retort authenticates at a server: by a login or by a configured header. It returns ""
// if the server gets no credentials.
func (e *Engine) describeLogin(spec Server) string {
	if c := e.activeConfig().logins[spec.Name].clientFor(""); c != nil {
		if s, kept := c.Status(context.Background()); kept {
			return strings.TrimSpace("by a login: " + s.State + formatExpiry(s.Until))
		}
	}
	for name := range spec.Headers {
		if strings.EqualFold(name, "Authorization") {
			return "by a header in its configuration"
		}
	}
	return ""
}

// formatExpiry returns " until" and the time, or "" if t is nil.
func formatExpiry(t *time.Time) string {
	if t == nil {
		return ""
	}
	return " until " + t.Format(time.RFC3339)
}

// runtimeVersions returns the versions of the installed language runtimes, by name.
func (e *Engine) runtimeVersions(ctx context.Context, sandboxes []sandbox.Capabilities) map[string]string {
	r := e.config.Settings.Runtimes
	commands := map[string]string{"python": r.Python, "node": r.Node, "bun": r.Bun, "deno": r.Deno}
	versions := map[string]string{}
	for _, s := range sandboxes {
		for _, name := range s.Runtimes {
			if path, err := exec.LookPath(cmp.Or(commands[name], core.DefaultCommand(name))); err == nil && versions[name] == "" {
				versions[name] = doctor.ProgramVersion(ctx, path)
			}
		}
	}
	return versions
}
