package admin

import (
	"context"
	"path/filepath"
	"retort/internal/recommend"
	"slices"
	"time"

	"retort/internal/audit"
	"retort/internal/audit/sqlstore"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/engine"
)

// Advice holds one recommended change to the configuration.
type Advice = recommend.Advice

// Recommendations holds the advice derived from the audit log and the configuration.
type Recommendations struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Entries int64     `json:"entries"` // number of audit log entries that were read
	Advice  []Advice  `json:"advice"`
	// Registry is when the registry's list was fetched. It is nil if there is no list.
	Registry *time.Time `json:"registry_fetched,omitempty"`
	Warnings []string   `json:"warnings,omitempty"`
}

// Recommend returns advice on what to change in a configuration. It derives the advice from the entries that all
// engines of the configuration have recorded in the audit log since the time from. It starts no server and
// downloads nothing.
func Recommend(ctx context.Context, c engine.Config, from time.Time) (Recommendations, error) {
	now := time.Now()
	out := Recommendations{From: from, To: now, Advice: []Advice{}}
	s, err := openStores(c)
	if err != nil {
		return out, err
	}
	if s.LoadedConfig().Home == "" {
		return out, core.Errorf(
			core.KindInvalidArguments, "retort.recommend",
			"without a data directory nothing is recorded, so there is no basis for advice",
		).WithHint("choose a data directory with --home")
	}
	r, err := s.ReadAudit(ctx, sqlstore.Options{ReadOnly: true})
	if err != nil {
		return out, asError(err)
	}
	defer r.Close()
	var t recommend.EventTally
	places, err := audit.PlacesFrom("")
	if err != nil {
		return out, err
	}
	for e, err := range r.After(ctx, AuditFilter{Kinds: recommend.EventKinds(), From: from, To: now}, "", places, &out.Warnings) {
		if err != nil {
			return out, asError(err)
		}
		out.Entries++
		t.Add(&e)
	}
	list, refused := recommend.LoadRegistry(s.DataDir().Registry())
	if refused != nil {
		out.Warnings = append(out.Warnings, refused.Message)
	}
	if list != nil {
		out.Registry = &list.Fetched
	}
	out.Advice = t.ListAdvice(recommend.KnownState{Servers: enabledServers(s.LoadedConfig()), Cached: cachedTools(s.LoadedConfig().Settings.Cache), List: list})
	return out, nil
}

// UpdateRegistry downloads the server list of the registry that the settings name, and stores it for Recommend. It
// returns the number of servers in the list.
func UpdateRegistry(ctx context.Context, c engine.Config) (int, error) {
	s, err := openStores(c)
	if err != nil {
		return 0, err
	}
	address := s.LoadedConfig().Settings.Recommend.Registry
	switch {
	case address == "":
		return 0, core.Errorf(core.KindInvalidArguments, "retort.recommend", "the settings do not name a registry").WithHint(
			`set recommend: {registry: "https://…"} in retort.yaml to a registry with the endpoint /v0/servers`,
		)
	case s.LoadedConfig().Home == "":
		return 0, core.Errorf(
			core.KindInvalidArguments, "retort.recommend", "there is no data directory",
		).WithHint("choose a data directory with --home")
	}
	list, refused := recommend.FetchRegistry(ctx, address)
	if refused == nil {
		refused = list.SaveFile(s.DataDir().Registry())
	}
	if refused != nil {
		return 0, refused
	}
	return len(list.Servers), nil
}

// enabledServers returns the sorted names of the configured servers that are not disabled.
func enabledServers(c *config.Config) (names []string) {
	for _, s := range c.Servers {
		if !s.Disabled && !c.Settings.Servers[s.Name].Disabled {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// cachedTools returns a function that reports whether the settings allow the results of a tool to be cached.
func cachedTools(s config.Cache) func(tool string) bool {
	return func(tool string) bool {
		return s.TTL > 0 && slices.ContainsFunc(s.Tools, func(pattern string) bool {
			ok, err := filepath.Match(pattern, tool)
			return err == nil && ok
		})
	}
}
