package config

import (
	"strings"
)

// maxEnvFile bounds the size of an environment file, in bytes.
const maxEnvFile = 1 << 20

// readFilePath returns the reader for a setting whose value is the path of a file.
func readFilePath(v *string) settingReader { return readPath(v) }

// readEnvFile adds the variables of an environment file to the environment of a server. Variables in the entry itself
// take precedence.
func (s *serverEntry) readEnvFile(r *nodeReader, key *valueNode) {
	src, err := r.read(s.envFile)
	switch {
	case err != nil:
		r.addProblem(key, "", "envFile %s: %s", shortenText(s.envFile), err)
		return
	case len(src) > maxEnvFile:
		r.addProblem(key, "", "envFile %s exceeds %s", shortenText(s.envFile), showSize(maxEnvFile))
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

// envLine parses a line NAME=value as shells and editors do: after "export", in quotes, or with a trailing comment.
// ok is false if the line has no valid name.
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
