package engine

import (
	"cmp"
	"slices"
	"strings"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/mcp/client"
)

// listServers returns the enabled servers of the configuration files and those in c. It returns an error if two
// servers have the same name.
func (c Config) listServers(loaded *config.Config) ([]Server, error) {
	servers := slices.Clone(c.Servers)
	for _, s := range loaded.Servers {
		if s.Disabled || c.OnlyServers != nil && !slices.Contains(c.OnlyServers, s.Name) {
			continue
		}
		servers = append(servers, newServer(s))
	}
	for i := range servers {
		applyInstanceSettings(&servers[i], loaded.Settings.Servers[servers[i].Name].ServerInstances)
	}
	seen := map[string]bool{}
	for _, s := range servers {
		if seen[s.Name] {
			return nil, core.Errorf(core.KindInvalidArguments, "retort.open", "the server %q is defined twice", s.Name)
		}
		seen[s.Name] = true
	}
	return servers, nil
}

// checkUnknownServers returns an error if settings given as text name a server that is not configured: a misspelt name
// would silently drop a rule. Settings from files are checked when they are read.
func (c Config) checkUnknownServers(loaded *config.Config) error {
	if c.Settings == "" && !c.NoFiles || len(loaded.Settings.ToolDefinitions) > 0 {
		return nil
	}
	var known []string
	for _, s := range c.Servers {
		known = append(known, s.Name)
	}
	for _, s := range loaded.Servers {
		known = append(known, s.Name)
	}
	for _, name := range loaded.Settings.NamedServers() {
		if !slices.Contains(known, name) {
			return core.Errorf(core.KindInvalidArguments, "retort.open", "settings for the server %q, which is not configured", name).
				WithHint("the configured servers are %s", strings.Join(known, ", "))
		}
	}
	return nil
}

// applyInstanceSettings copies the settings that say how principals share the instances of a server into s.
func applyInstanceSettings(s *Server, i config.ServerInstances) {
	s.Isolation = cmp.Or(client.Isolation(i.Isolation), s.Isolation)
	s.Stateful = i.Stateful || s.Stateful
	s.Idle, s.Instances = cmp.Or(i.Idle, s.Idle), cmp.Or(i.Instances, s.Instances)
}

// newServer converts a server of a configuration file to a Server.
func newServer(s config.Server) Server {
	transport := string(s.Transport)
	if s.Transport == config.TransportAuto {
		transport = ""
	}
	u := Server{
		Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Cwd,
		URL: s.URL, Headers: s.Headers, Transport: transport, CallTimeout: s.Timeout,
	}
	if s.Err != nil {
		u.Err = s.Err
	}
	return u
}

// serverNames returns the names of servers, in their order.
func serverNames(servers []Server) (names []string) {
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return names
}
