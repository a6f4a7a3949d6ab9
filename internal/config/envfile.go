package config

import (
	"strings"
)

// maxEnvFile bounds a file of variables.
const maxEnvFile = 1 << 20

// file reads the path of a file.
func file(v *string) into { return folder(v) }

// readEnvFile adds the variables of a file to the environment of a server. What the
// entry itself says goes first.
func (s *serverEntry) readEnvFile(r *reader, key *node) {
	src, err := r.read(s.envFile)
	switch {
	case err != nil:
		r.fail(key, "", "envFile %s: %s", shorten(s.envFile), err)
		return
	case len(src) > maxEnvFile:
		r.fail(key, "", "envFile %s is larger than %s", shorten(s.envFile), showSize(maxEnvFile))
		return
	}
	for _, line := range strings.Split(strings.TrimPrefix(string(src), "\ufeff"), "\n") {
		name, value, ok := envLine(line)
		if _, stated := s.Env[name]; !ok || stated {
			continue
		}
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		s.Env[name] = value
	}
}

// envLine reads NAME=value, as shells and editors do: after "export", in quotes, with
// a comment behind. A line without a name is none.
func envLine(line string) (name, value string, ok bool) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
	name, value, ok = strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || !isVariable(name) || strings.Contains(value, "\x00") {
		return "", "", false
	}
	if value != "" && strings.ContainsRune(`"'`, rune(value[0])) {
		if inside, _, closed := strings.Cut(value[1:], value[:1]); closed {
			if value[0] == '"' {
				inside = strings.ReplaceAll(inside, `\n`, "\n")
			}
			return name, inside, true
		}
	}
	if before, _, comment := strings.Cut(value, " #"); comment {
		value = strings.TrimSpace(before)
	}
	return name, value, true
}
