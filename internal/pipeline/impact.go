package pipeline

import (
	"encoding/json"

	"retort/internal/pipeline/gate/rules"
	"retort/internal/run"
)

// programImpact is what a program may touch, with the tools that it can call.
func programImpact(r rules.Risk) run.Impact {
	m := run.Impact{
		FilesAffected: r.Impact.Affects, NetworksAccessed: r.Impact.Domains, CommandsExecuted: r.Impact.Commands,
		DataModified: len(r.Impact.Affects)+len(r.Impact.Commands) > 0, Reversible: len(r.Impact.Deletes)+len(r.Impact.Commands) == 0,
	}
	if r.Reaches() && len(r.Impact.Domains) == 0 {
		m.NetworksAccessed = []string{rules.Computed}
	}
	for _, u := range r.Uses {
		m.DataModified = m.DataModified || u.Effect.Kind > run.EffectRead
		m.Reversible = m.Reversible && u.Effect.Kind < run.EffectDestructive
	}
	return m
}

// callImpact is what a call of a tool may touch.
func callImpact(tool, effect string, arguments json.RawMessage) run.Impact {
	a := rules.ReadArguments(tool, arguments)
	m := run.Impact{
		NetworksAccessed: a.Domains, CommandsExecuted: a.Commands,
		DataModified: effect != run.EffectRead.String(), Reversible: effect == run.EffectRead.String() || effect == run.EffectWrite.String(),
	}
	if m.DataModified {
		m.FilesAffected = a.Files
	}
	return m
}

// effectsImpact is what the calls of a dry run may touch beside what the program does itself.
func effectsImpact(program run.Impact, effects []run.Intended, arguments func(run.Intended) json.RawMessage) run.Impact {
	m := program
	for _, e := range effects {
		m.Add(callImpact(e.Tool, e.Effect, arguments(e)))
	}
	return m
}
