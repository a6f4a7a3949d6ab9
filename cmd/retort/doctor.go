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

// doctorCommands builds retort doctor.
type doctorCommands struct{ *app }

func (a doctorCommands) command() *cobra.Command {
	var fix bool
	var patience time.Duration
	c := &cobra.Command{
		Use: "doctor [SERVER]...", Short: "What works on this machine, and what mends the rest",
		Long: `Starts the servers, all at once, and says of each whether it works, and else why not and
which command mends it; the same of this machine. Ends with 1 if something is broken.

--fix mends what is safe to mend: permissions of home and keys, folders that are missing,
sockets of engines that have died. It touches no client's file.`,
		RunE: func(cmd *cobra.Command, servers []string) error {
			machine, err := admin.ExamineMachine(cmd.Context(), engine.Config{Files: a.configs, Home: a.home}, fix)
			if err != nil {
				return err
			}
			e, err := a.open(cmd.Context(), func(c *engine.Config) { c.Reserve = engine.ReserveNone })
			if err != nil {
				if !a.asJSON {
					a.printChecks(machine)
				}
				return err
			}
			defer e.Close()
			d, err := a.examined(cmd, e, machine, patience, servers)
			if err != nil {
				return err
			}
			if p, err := (clientCommands{a.app}).place("", false); err == nil && len(servers) == 0 {
				d.Clients = clientChecks(clientfiles.Survey(p.env), d.Files)
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
	c.Flags().BoolVar(&fix, "fix", false, "mend what is safe to mend")
	c.Flags().DurationVar(&patience, "timeout", time.Minute, "how long each server may take")
	return c
}

// examined waits for the servers and diagnoses them. It shows the names of those that it is waiting for.
func (a doctorCommands) examined(
	cmd *cobra.Command, e *engine.Engine, machine []doctor.Check, patience time.Duration, servers []string,
) (engine.Diagnosis, error) {
	say, done := a.progress("connecting")
	defer done()
	watch := time.AfterFunc(900*time.Millisecond, func() { say("waiting for " + strings.Join(e.Pending(), ", ")) })
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
			a.absent("sandbox "+s.Name, s.Unavailable)
			continue
		}
		a.mark(s.Unavailable == nil, fmt.Sprintf("sandbox %s (%s): %s", s.Name, strings.Join(s.Runtimes, ", "), strings.Join(s.Walls, "; ")))
		if s.Unavailable != nil {
			a.explain(s.Unavailable)
		}
		if s.Warning != "" {
			fmt.Fprintln(a.stdout, "     ", printable(s.Warning))
		}
		for _, m := range s.Missing {
			a.absent("runtime "+m.Runtime, m.Why)
		}
		for _, m := range s.NoCommands {
			a.mark(false, "command "+m.Command+": "+printable(m.Why.Message))
			a.explain(m.Why)
		}
		if len(s.Commands) > 0 {
			a.mark(true, "commands that programs may start: "+strings.Join(s.Commands, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Runtimes)) {
		a.mark(true, strings.TrimSpace("runtime "+name+": "+printable(d.Runtimes[name])))
	}
	for _, s := range d.Servers {
		a.printDiagnosis(s)
	}
}

// clientChecks checks whether the client files start Retort. Problems are only warnings: the user decides what a
// client starts.
func clientChecks(all []clientfiles.Surveyed, read []string) []doctor.Check {
	var checks []doctor.Check
	for _, s := range all {
		if slices.Contains(read, s.File) {
			continue // its servers are those of Retort
		}
		c := doctor.Check{Name: "client " + s.Client, Level: doctor.OK, Words: s.File + " starts Retort"}
		others := strings.Join(s.Others, ", ")
		install := "retort install " + s.Client
		if s.Scope == clientfiles.Project {
			install += " --project"
		}
		switch {
		case s.Err != nil:
			c.Level, c.Words = doctor.Warning, core.AsError(s.Err).Message
		case s.Missing != "":
			c.Level, c.Words, c.Mend = doctor.Warning, s.File+" starts Retort with "+s.Missing+", which is not there", install
		case !s.Retort:
			c.Level, c.Words, c.Mend = doctor.Warning, s.File+" does not start Retort, but "+others, install
		case others != "":
			c.Words += ", and beside it " + others
		}
		checks = append(checks, c)
	}
	return checks
}

func (a doctorCommands) printChecks(checks []doctor.Check) {
	for _, c := range checks {
		sign := a.style(a.stdout, green, map[doctor.Level]string{doctor.OK: "ok ", doctor.Mended: "mended"}[c.Level])
		switch c.Level {
		case doctor.Warning:
			sign = a.style(a.stdout, amber, "!  ")
		case doctor.Broken:
			sign = a.style(a.stdout, red, "no ")
		}
		fmt.Fprintln(a.stdout, sign, c.Name+":", printable(c.Words))
		a.mend(c.Mend)
	}
}

func (a doctorCommands) printDiagnosis(s engine.ServerDiagnosis) {
	line := fmt.Sprintf("server %s: %s", printable(s.Name), s.State)
	if s.Protocol != "" {
		line += fmt.Sprintf(", %s %s, protocol %s (%s), %d tools, connected in %.0f ms, answers in %.1f ms",
			printable(s.Implementation), printable(s.Version), printable(s.Protocol), s.Era, s.Tools, s.ConnectMS, s.LatencyMS)
	}
	if s.Login != "" {
		line += ", login " + printable(s.Login)
	}
	a.mark(s.OK, line)
	if s.Cause != nil {
		fmt.Fprintln(a.stdout, "     ", printable(s.Cause.Words))
		if s.Error != nil && !strings.Contains(s.Cause.Words, s.Error.Message) {
			fmt.Fprintln(a.stdout, "     ", a.style(a.stdout, dim, printable(s.Error.Message)))
		}
		a.mend(s.Cause.Mend)
	}
	for _, r := range s.Remarks {
		fmt.Fprintln(a.stdout, "     ", printable(r.Words))
		a.mend(r.Mend)
	}
	for _, problem := range s.Problems {
		fmt.Fprintln(a.stdout, "     ", printable(problem))
	}
	if s.OK {
		return
	}
	for _, text := range s.Stderr[max(0, len(s.Stderr)-8):] {
		fmt.Fprintln(a.stdout, "     ", a.style(a.stdout, dim, "| "+printable(text)))
	}
}

// mend prints the next step for the user, if any.
func (a doctorCommands) mend(how string) {
	if how != "" {
		fmt.Fprintln(a.stdout, "     ", a.style(a.stdout, bold, "→ "+printable(how)))
	}
}

func (a doctorCommands) explain(e *engine.Error) {
	fmt.Fprintln(a.stdout, "     ", printable(e.Message))
	a.mend(e.Hint)
}
