package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retort"
)

func (a *app) doctor() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "What works on this machine, and what mends the rest", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, func(e *retort.Engine) error {
				a.settle(cmd.Context(), e, time.Minute)
				report := e.Doctor()
				if asJSON {
					return a.printJSON(report)
				}
				a.printDoctor(report)
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printDoctor(d retort.Diagnosis) {
	fmt.Fprintln(a.stdout, "home:", d.Home)
	for _, f := range d.Files {
		fmt.Fprintln(a.stdout, "read:", f)
	}
	for _, s := range d.Sandboxes {
		a.mark(s.Unavailable == nil, fmt.Sprintf("sandbox %s (%s): %s", s.Name, strings.Join(s.Runtimes, ", "), strings.Join(s.Walls, "; ")))
		if s.Unavailable != nil {
			a.explain(s.Unavailable)
		}
		if s.Warning != "" {
			fmt.Fprintln(a.stdout, "     ", printable(s.Warning))
		}
		for _, m := range s.Missing {
			a.mark(false, "runtime "+m.Runtime)
			a.explain(m.Why)
		}
	}
	for _, s := range d.Servers {
		line := fmt.Sprintf("server %s: %s", printable(s.Name), s.State)
		if s.Protocol != "" {
			line += fmt.Sprintf(", %s %s, protocol %s, %d tools, connected in %.0f ms, answers in %.1f ms",
				printable(s.Implementation), printable(s.Version), s.Protocol, s.Tools, s.ConnectMS, s.LatencyMS)
		}
		a.mark(s.Error == nil, line)
		if s.Error != nil {
			a.explain(s.Error)
		}
		for _, tool := range s.Changed {
			fmt.Fprintf(a.stdout, "      %s has changed since it was trusted; retort tools --changed %s\n", printable(tool), printable(s.Name))
		}
		for _, tool := range s.Flagged {
			fmt.Fprintf(a.stdout, "      %s has something in its definition that does not belong there; retort describe %s.%s\n", printable(tool), printable(s.Name), printable(tool))
		}
		for _, problem := range s.Problems {
			fmt.Fprintln(a.stdout, "     ", printable(problem))
		}
		for _, text := range s.Stderr {
			fmt.Fprintln(a.stdout, "     ", a.style(a.stdout, dim, printable(text)))
		}
	}
	for _, missing := range d.NotBuilt {
		fmt.Fprintln(a.stdout, a.style(a.stdout, dim, "not built in this version: "+missing))
	}
}

func (a *app) mark(ok bool, line string) {
	sign := a.style(a.stdout, green, "ok ")
	if !ok {
		sign = a.style(a.stdout, red, "no ")
	}
	fmt.Fprintln(a.stdout, sign, line)
}

func (a *app) explain(e *retort.Error) {
	fmt.Fprintln(a.stdout, "     ", printable(e.Message))
	if e.Hint != "" {
		fmt.Fprintln(a.stdout, "     ", printable(e.Hint))
	}
}
