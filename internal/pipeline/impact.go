package pipeline

import (
	"encoding/json"

	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
)

// programImpact returns what a program may touch: its files, networks and commands. It also says whether the program,
// or a tool that it uses, may modify data, and whether that can be undone.
func programImpact(r rules.ProgramRisk) core.Impact {
	m := core.Impact{
		FilesAffected: r.Impact.Affects, NetworksAccessed: r.Impact.Domains, CommandsExecuted: r.Impact.Commands,
		DataModified: len(r.Impact.Affects)+len(r.Impact.Commands) > 0, Reversible: len(r.Impact.Deletes)+len(r.Impact.Commands) == 0,
	}
	if r.UsesNetwork() && len(r.Impact.Domains) == 0 {
		m.NetworksAccessed = []string{rules.Computed}
	}
	for _, u := range r.Uses {
		m.DataModified = m.DataModified || u.Effect.Kind > core.EffectRead
		m.Reversible = m.Reversible && u.Effect.Kind < core.EffectIrreversible
	}
	return m
}

// callImpact returns what a tool call may touch, such as files and networks, judged by the tool's effect and the
// call's arguments.
func callImpact(tool, effect string, arguments json.RawMessage) core.Impact {
	a := rules.ReadArguments(tool, arguments)
	m := core.Impact{
		NetworksAccessed: a.Domains, CommandsExecuted: a.Commands,
		DataModified: effect != core.EffectRead.String(), Reversible: effect == core.EffectRead.String() || effect == core.EffectWrite.String(),
	}
	if m.DataModified {
		m.FilesAffected = a.Files
	}
	return m
}

// effectsImpact returns everything that a program may touch: what its code shows, which is the argument program, and
// what the calls that a dry run has recorded show.
func effectsImpact(program core.Impact, effects []core.IntendedCall, arguments func(core.IntendedCall) json.RawMessage) core.Impact {
	m := program
	for _, e := range effects {
		m.Add(callImpact(e.Tool, e.Effect, arguments(e)))
	}
	return m
}
