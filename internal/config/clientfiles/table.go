package clientfiles

import (
	"maps"
	"slices"
)

// AllClients returns all clients that Retort knows. Their file formats and paths are the ones that the clients' own
// documentation states. The result caches what is read from large files, so use it for one operation only.
func AllClients() []Client {
	all := append(commonClients(), moreClients()...)
	for i := range all {
		if all[i].format == (jsonFile{}) {
			all[i].format = jsonFile{&lastRead{}}
		}
	}
	return all
}

func commonClients() []Client {
	return []Client{
		{
			Name: "claude-code", Title: "Claude Code", format: jsonFile{}, placeholderDialect: placeholderDialect{braces: true},
			fields: commonFields(map[string]fieldMeaning{"type": typeField, "timeout": millisecondsField}),
			entry:  withType("stdio"),
			places: []filePlace{
				{scope: User, files: []string{"{claude}/.claude.json"}, at: []string{"mcpServers"}},
				{scope: Local, files: []string{"{claude}/.claude.json"}, at: []string{"projects", "{dir}", "mcpServers"}},
				{scope: Project, files: []string{"{project}/.mcp.json"}, at: []string{"mcpServers"}},
			},
		},
		{
			Name: "claude-desktop", Title: "Claude Desktop", format: jsonFile{},
			fields: commonFields(map[string]fieldMeaning{"type": typeField}), entry: commandEntry,
			places: []filePlace{{scope: User, files: []string{"{app}/Claude/claude_desktop_config.json"}, at: []string{"mcpServers"}}},
		},
		{
			Name: "cursor", Title: "Cursor", format: jsonFile{}, placeholderDialect: placeholderDialect{prefixed: true},
			fields: commonFields(map[string]fieldMeaning{"envFile": envFileField, "type": typeField}), entry: commandEntry,
			places: []filePlace{
				{scope: User, files: []string{"{home}/.cursor/mcp.json"}, at: []string{"mcpServers"}},
				{scope: Project, files: []string{"{project}/.cursor/mcp.json"}, at: []string{"mcpServers"}},
			},
		},
		{
			Name: "vscode", Title: "VS Code", format: jsonFile{}, placeholderDialect: placeholderDialect{prefixed: true},
			fields: commonFields(map[string]fieldMeaning{"envFile": envFileField, "type": typeField, "gallery": ignoredField, "version": ignoredField}),
			entry:  withType("stdio"),
			places: []filePlace{
				{scope: User, files: []string{"{app}/Code/User/mcp.json"}, at: []string{"servers"}},
				{scope: User, files: []string{"{app}/Code/User/profiles/*/mcp.json"}, at: []string{"servers"}, readOnly: true},
				{scope: User, files: []string{"{app}/Code - Insiders/User/mcp.json"}, at: []string{"servers"}, readOnly: true},
				{scope: Project, files: []string{"{project}/.vscode/mcp.json"}, at: []string{"servers"}},
			},
		},
		{
			Name: "codex", Title: "Codex", format: tomlFile{},
			fields: commonFields(map[string]fieldMeaning{
				"http_headers": ofHeaders, "env_http_headers": envHeadersField, "bearer_token_env_var": bearerField,
				"env_vars": envNamesField, "tool_timeout_sec": secondsField, "enabled": ofEnabled,
				"enabled_tools": allowField, "disabled_tools": denyField, "startup_timeout_sec": ignoredField, "startup_timeout_ms": ignoredField,
			}),
			entry: commandEntry,
			places: []filePlace{
				{scope: User, files: []string{"{codex}/config.toml"}, at: []string{"mcp_servers"}},
				{scope: Project, files: []string{"{project}/.codex/config.toml"}, at: []string{"mcp_servers"}},
			},
		},
		{
			Name: "windsurf", Title: "Windsurf", format: jsonFile{}, placeholderDialect: placeholderDialect{prefixed: true},
			fields: commonFields(map[string]fieldMeaning{"type": typeField, "serverUrl": ofURL, "disabledTools": denyField, "serverURL": ofURL}), entry: commandEntry,
			places: []filePlace{{scope: User, files: []string{"{home}/.codeium/windsurf/mcp_config.json"}, at: []string{"mcpServers"}}},
		},
	}
}

func moreClients() []Client {
	return []Client{
		{
			Name: "gemini", Title: "Gemini CLI", format: jsonFile{}, placeholderDialect: placeholderDialect{braces: true, dollar: true, percent: true},
			fields: commonFields(map[string]fieldMeaning{
				"type": typeField, "httpUrl": httpURLField, "timeout": millisecondsField, "includeTools": allowField, "excludeTools": denyField, "description": ignoredField,
			}),
			entry: commandEntry, disabled: geminiDisabled,
			places: []filePlace{
				{scope: User, files: []string{"{home}/.gemini/settings.json"}, at: []string{"mcpServers"}},
				{scope: Project, files: []string{"{project}/.gemini/settings.json"}, at: []string{"mcpServers"}},
			},
		},
		{
			Name: "zed", Title: "Zed", format: jsonFile{},
			fields: commonFields(map[string]fieldMeaning{"source": ignoredField, "enabled": ofEnabled, "path": commandField}),
			entry: func(command string, args []string) map[string]any {
				return withKey(commandEntry(command, args), "source", "custom")
			},
			problem: zedProblem,
			places: []filePlace{
				{scope: User, files: []string{"{zed}/settings.json"}, at: []string{"context_servers"}},
				{scope: Project, files: []string{"{project}/.zed/settings.json"}, at: []string{"context_servers"}},
			},
		},
		{
			Name: "opencode", Title: "opencode", format: jsonFile{}, placeholderDialect: placeholderDialect{curly: true},
			fields: commonFields(map[string]fieldMeaning{"type": typeField, "environment": ofEnv, "enabled": ofEnabled}),
			entry: func(command string, args []string) map[string]any {
				return map[string]any{"type": "local", "command": append([]string{command}, args...), "enabled": true}
			},
			places: []filePlace{
				{scope: User, files: []string{
					"{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc", "{config}/opencode/config.json",
				}, at: []string{"mcp"}},
				{scope: Project, files: []string{"{project}/opencode.json", "{project}/opencode.jsonc", "{project}/.opencode/opencode.json", "{project}/.opencode/opencode.jsonc"}, at: []string{"mcp"}},
			},
		},
		{
			Name: "goose", Title: "Goose", format: yamlFile{}, placeholderDialect: placeholderDialect{inHeaders: true},
			fields: commonFields(map[string]fieldMeaning{
				"type": typeField, "cmd": commandField, "envs": ofEnv, "env_keys": keyringField, "uri": ofURL, "timeout": secondsField, "enabled": ofEnabled,
				"available_tools": allowField, "name": ignoredField, "description": ignoredField, "bundled": ignoredField, "display_name": ignoredField,
			}),
			entry: func(command string, args []string) map[string]any {
				return map[string]any{
					"enabled": true, "type": "stdio", "name": "retort", "description": "one MCP server in front of all others",
					"cmd": command, "args": args, "envs": map[string]any{}, "timeout": 300,
				}
			},
			problem: gooseProblem,
			places:  []filePlace{{scope: User, files: []string{"{goose}/config.yaml"}, at: []string{"extensions"}}},
		},
		{
			Name: "lm-studio", Title: "LM Studio", format: jsonFile{},
			fields: commonFields(map[string]fieldMeaning{"type": typeField}), entry: commandEntry,
			places: []filePlace{{scope: User, files: []string{"{home}/.lmstudio/mcp.json"}, at: []string{"mcpServers"}}},
		},
	}
}

// commonFields returns the fields that nearly every client has, together with the client's own fields.
func commonFields(own map[string]fieldMeaning) map[string]fieldMeaning {
	all := map[string]fieldMeaning{
		"command": commandField, "args": ofArgs, "env": ofEnv, "cwd": ofCwd, "url": ofURL, "headers": ofHeaders, "disabled": ofDisabled,
	}
	maps.Copy(all, own)
	return all
}

func commandEntry(command string, args []string) map[string]any {
	return map[string]any{"command": command, "args": args}
}

func withType(kind string) func(string, []string) map[string]any {
	return func(command string, args []string) map[string]any {
		return withKey(commandEntry(command, args), "type", kind)
	}
}

func withKey(m map[string]any, key string, value any) map[string]any {
	m[key] = value
	return m
}

// zedProblem refuses servers that are provided by an extension of Zed.
func zedProblem(entry map[string]any) string {
	if entry["source"] == "extension" || entry["command"] == nil && entry["url"] == nil {
		return "it is provided by an extension of Zed"
	}
	return ""
}

// gooseProblem refuses the extensions that are built into Goose.
func gooseProblem(entry map[string]any) string {
	switch kind, _ := entry["type"].(string); kind {
	case "builtin", "platform", "frontend", "inline_python":
		return "it is part of Goose (" + kind + ")"
	}
	return ""
}

// geminiDisabled reports whether Gemini CLI's lists of allowed and excluded servers disable a server.
func geminiDisabled(whole map[string]any, name string) bool {
	lists, _ := whole["mcp"].(map[string]any)
	allowed, some := lists["allowed"].([]any)
	excluded, _ := lists["excluded"].([]any)
	return some && len(allowed) > 0 && !slices.Contains(allowed, any(name)) || slices.Contains(excluded, any(name))
}
