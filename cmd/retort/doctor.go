package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retort/internal/admin"
	"retort/internal/config/clientfiles"
	"retort/internal/core"
	"retort/internal/doctor"
	"retort/internal/engine"
)

// doctorCommands defines the command "retort doctor".
type doctorCommands struct{ *app }

func (a doctorCommands) command() *cobra.Command {
	var fix bool
	var patience time.Duration
	c := &cobra.Command{
		Use: "doctor [SERVER]...", Short: "Check the MCP servers and this machine, and say how to repair problems",
		Long: `The command starts all MCP servers, and says for each server whether it works. If a server does not work,
the command names the cause and a command that repairs the problem. The command checks this machine in the
same way. If something does not work, the exit code is 1.

With --fix, the command repairs what it can repair safely: the permissions of the data directory and of
keys, missing folders, and sockets of Retort processes that have ended. The command never changes a file
of a client.`,
		RunE: func(cmd *cobra.Command, servers []string) error {
			machine, err := admin.ExamineMachine(cmd.Context(), engine.Config{Files: a.configs, Home: a.home}, fix)
			if err != nil {
				return err
			}
			e, err := a.openEngine(cmd.Context(), func(c *engine.Config) { c.Reserve = engine.ReserveNone })
			if err != nil {
				if !a.asJSON {
					a.printChecks(machine)
				}
				return err
			}
			defer e.Close()
			d, err := a.diagnoseServers(cmd, e, machine, patience, servers)
			if err != nil {
				return err
			}
			if p, err := clientCommands(a).findClientPaths("", false); err == nil && len(servers) == 0 {
				d.Clients = clientChecks(clientfiles.SurveyClients(p.env), d.Files)
			}
			if a.asJSON {
				err = a.printJSON(d)
			} else {
				a.printDoctor(d)
			}
			if err == nil && !d.OK {
				return exitError(exitFailed)
			}
			return err
		},
	}
	offerJSON(c)
	c.Flags().BoolVar(&fix, "fix", false, "repair problems that Retort can repair safely")
	c.Flags().DurationVar(&patience, "timeout", time.Minute, "time limit for the check of each server")
	return c
}

// diagnoseServers waits for the servers and diagnoses them. It shows the names of the servers for which it is waiting.
func (a doctorCommands) diagnoseServers(
	cmd *cobra.Command, e *engine.Engine, machine []doctor.CheckResult, patience time.Duration, servers []string,
) (engine.Diagnosis, error) {
	say, done := a.startProgress("connecting")
	defer done()
	watch := time.AfterFunc(900*time.Millisecond, func() { say("waiting for " + strings.Join(e.PendingServers(), ", ")) })
	defer watch.Stop()
	return e.Doctor(cmd.Context(), machine, patience, servers...)
}

func (a doctorCommands) printDoctor(d engine.Diagnosis) {
	fmt.Fprintln(a.stdout, "retort", d.Version)
	for _, f := range d.Files {
		fmt.Fprintln(a.stdout, "read:", f)
	}
	a.printChecks(d.Machine)
	a.printChecks(d.Clients)
	for _, s := range d.Sandboxes {
		if s.Unavailable != nil && s.Name != d.Sandbox && s.Name != "process" {
			a.printAbsent("sandbox "+s.Name, s.Unavailable)
			continue
		}
		a.printMark(s.Unavailable == nil, fmt.Sprintf("sandbox %s (%s): %s", s.Name, strings.Join(s.Runtimes, ", "), strings.Join(s.Walls, "; ")))
		if s.Unavailable != nil {
			a.printErrorDetail(s.Unavailable)
		}
		if s.Warning != "" {
			fmt.Fprintln(a.stdout, "     ", replaceControls(s.Warning))
		}
		for _, m := range s.Missing {
			a.printAbsent("runtime "+m.Runtime, m.Why)
		}
		for _, m := range s.NoCommands {
			a.printMark(false, "command "+m.Command+": "+replaceControls(m.Why.Message))
			a.printErrorDetail(m.Why)
		}
		if len(s.Commands) > 0 {
			a.printMark(true, "commands that programs may start: "+strings.Join(s.Commands, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Runtimes)) {
		a.printMark(true, strings.TrimSpace("runtime "+name+": "+replaceControls(d.Runtimes[name])))
	}
	for _, s := range d.Servers {
		a.printDiagnosis(s)
	}
}

// clientChecks checks for each MCP client's configuration file whether it starts Retort. It reports problems only as
// warnings, because the user decides which servers a client starts.
func clientChecks(all []clientfiles.SurveyedFile, read []string) []doctor.CheckResult {
	var checks []doctor.CheckResult
	for _, s := range all {
		if slices.Contains(read, s.File) {
			continue // its servers are those of Retort
		}
		c := doctor.CheckResult{Name: "client " + s.Client, Level: doctor.OK, Words: s.File + " starts Retort"}
		others := strings.Join(s.Others, ", ")
		install := "retort install " + s.Client
		if s.Scope == clientfiles.Project {
			install += " --project"
		}
		switch {
		case s.Err != nil:
			c.Level, c.Words = doctor.Warning, core.AsError(s.Err).Message
		case s.Missing != "":
			c.Level, c.Words, c.Mend = doctor.Warning, s.File+" starts Retort with "+s.Missing+", which does not exist", install
		case !s.Retort:
			c.Level, c.Words, c.Mend = doctor.Warning, s.File+" does not start Retort, but "+others, install
		case others != "":
			c.Words += ", and also starts " + others
		}
		checks = append(checks, c)
	}
	return checks
}

func (a doctorCommands) printChecks(checks []doctor.CheckResult) {
	for _, c := range checks {
		sign := a.styleText(a.stdout, green, map[doctor.CheckStatus]string{doctor.OK: "ok ", doctor.Mended: "mended"}[c.Level])
		switch c.Level {
		case doctor.Warning:
			sign = a.styleText(a.stdout, amber, "!  ")
		case doctor.Broken:
			sign = a.styleText(a.stdout, red, "no ")
		}
		fmt.Fprintln(a.stdout, sign, c.Name+":", replaceControls(c.Words))
		a.printNextStep(c.Mend)
	}
}

func (a doctorCommands) printDiagnosis(s engine.ServerDiagnosis) {
	line := fmt.Sprintf("server %s: %s", replaceControls(s.Name), s.State)
	if s.Protocol != "" {
		line += fmt.Sprintf(", %s %s, protocol %s (%s), %d tools, connected in %.0f ms, answers in %.1f ms",
			replaceControls(s.Implementation), replaceControls(s.Version), replaceControls(s.Protocol), s.Era, s.Tools, s.ConnectMS, s.LatencyMS)
	}
	if s.Login != "" {
		line += ", login " + replaceControls(s.Login)
	}
	a.printMark(s.OK, line)
	if s.Cause != nil {
		fmt.Fprintln(a.stdout, "     ", replaceControls(s.Cause.Words))
		if s.Error != nil && !strings.Contains(s.Cause.Words, s.Error.Message) {
			fmt.Fprintln(a.stdout, "     ", a.styleText(a.stdout, dim, replaceControls(s.Error.Message)))
		}
		a.printNextStep(s.Cause.Mend)
	}
	for _, r := range s.Remarks {
		fmt.Fprintln(a.stdout, "     ", replaceControls(r.Words))
		a.printNextStep(r.Mend)
	}
	for _, problem := range s.Problems {
		fmt.Fprintln(a.stdout, "     ", replaceControls(problem))
	}
	if s.OK {
		return
	}
	for _, text := range s.Stderr[max(0, len(s.Stderr)-8):] {
		fmt.Fprintln(a.stdout, "     ", a.styleText(a.stdout, dim, "| "+replaceControls(text)))
	}
}

// printNextStep prints what the user should do next, if there is anything.
func (a doctorCommands) printNextStep(how string) {
	if how != "" {
		fmt.Fprintln(a.stdout, "     ", a.styleText(a.stdout, bold, "→ "+replaceControls(how)))
	}
}

func (a doctorCommands) printErrorDetail(e *engine.Error) {
	fmt.Fprintln(a.stdout, "     ", replaceControls(e.Message))
	a.printNextStep(e.Hint)
}
