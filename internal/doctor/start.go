package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
)

var (
	unsetVariable = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`the variable ([A-Za-z_][A-Za-z0-9_]*) is not set`)
	})
	editorInput = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\$\{input:([^}]*)\}`)
	})
)

// explainConfiguration explains errors in the configuration of a server, which are found before the server is
// started.
func explainConfiguration(s FailureSymptom) *FailureCause {
	if m := unsetVariable().FindStringSubmatch(s.Message); m != nil {
		return &FailureCause{
			"unset_variable", fmt.Sprintf("its configuration needs the environment variable %s, which is not set", m[1]),
			"export " + m[1] + "=…",
		}
	}
	if m := editorInput().FindStringSubmatch(s.Message); m != nil {
		return &FailureCause{
			"editor_input", "its configuration makes an editor ask for ${input:" + m[1] + "}, which Retort cannot do",
			"replace it with ${" + variableName(m[1]) + "} in the configuration and set that variable",
		}
	}
	return nil
}

// variableName returns the name of the environment variable for an input of a server's configuration, such as API_KEY
// for api-key.
func variableName(input string) string {
	return strings.ToUpper(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(input, "_"))
}

// explainStart explains why a process could not be started.
func explainStart(s FailureSymptom) *FailureCause {
	if s.Command == "" || s.Err == nil {
		return nil
	}
	if c := explainDirectory(s.Dir); c != nil {
		return c // the system says "no such file" of it and of the command alike
	}
	switch {
	case errors.Is(s.Err, exec.ErrNotFound), errors.Is(s.Err, fs.ErrNotExist):
		return explainMissingCommand(s)
	case errors.Is(s.Err, fs.ErrPermission):
		return &FailureCause{"not_executable", fmt.Sprintf("%s is not executable", s.Command), "chmod +x " + shellQuote(s.Command)}
	case errors.Is(s.Err, syscall.ENOEXEC):
		return &FailureCause{
			"not_a_program",
			fmt.Sprintf("%s is not a program for this machine: it is built for another processor, or is a script without a #! line", s.Command),
			"file " + shellQuote(s.Command),
		}
	}
	return nil
}

// explainDirectory explains why the working directory of a server is invalid.
func explainDirectory(dir string) *FailureCause {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &FailureCause{
			"no_directory", fmt.Sprintf("its working directory %s does not exist", dir),
			"mkdir -p " + shellQuote(dir) + ", or correct cwd in its configuration",
		}
	case err != nil:
		return &FailureCause{"no_directory", fmt.Sprintf("its working directory %s cannot be entered: %v", dir, err), "correct cwd in its configuration"}
	case !info.IsDir():
		return &FailureCause{"no_directory", fmt.Sprintf("its working directory %s is a file", dir), "correct cwd in its configuration"}
	}
	return nil
}

// explainMissingCommand explains a command that was not found. It may be installed outside this process's PATH: a
// program started from a desktop often has a shorter PATH than a shell.
func explainMissingCommand(s FailureSymptom) *FailureCause {
	if s.Command != filepath.Base(s.Command) {
		if _, err := os.Stat(s.Command); err == nil {
			return &FailureCause{
				"no_interpreter", fmt.Sprintf("%s exists, but the interpreter that its first line names does not", s.Command),
				"head -1 " + shellQuote(s.Command),
			}
		}
		return &FailureCause{"command_not_found", fmt.Sprintf("the file %s does not exist", s.Command), "correct command in its configuration"}
	}
	if at := findOutsidePath(s.Command); at != "" {
		return &FailureCause{
			"not_in_path", fmt.Sprintf("%s is not in the PATH with which the server is started; it is at %s", s.Command, at),
			"set its command to " + at,
		}
	}
	c := &FailureCause{
		"command_not_found", fmt.Sprintf("%s is not installed", s.Command),
		"install " + s.Command + ", or set its command to the full path",
	}
	for _, t := range toolchains {
		if slices.Contains(t.commands, s.Command) {
			c.Words, c.Mend = fmt.Sprintf("%s is not installed; it comes with %s", s.Command, t.name), t.install
		}
	}
	return c
}

// toolchains lists programs with which most servers are started, such as npx, and how to install them.
var toolchains = []struct {
	name     string
	commands []string
	install  string
}{
	{
		"Node.js", []string{"node", "npx", "npm"},
		"install Node.js 20 or later: https://nodejs.org, brew install node, or apt install nodejs npm",
	},
	{"uv", []string{"uv", "uvx"}, "curl -LsSf https://astral.sh/uv/install.sh | sh (or brew install uv, pipx install uv)"},
	{"Docker", []string{"docker"}, "install Docker: https://docs.docker.com/get-docker, or apt install docker.io"},
	{"Podman", []string{"podman"}, "brew install podman, or apt install podman"},
	{
		"Python", []string{"python", "python3", "pip", "pip3"},
		"brew install python, or apt install python3 (python: apt install python-is-python3)",
	},
	{"pipx", []string{"pipx"}, "brew install pipx, or apt install pipx"},
	{"Bun", []string{"bun", "bunx"}, "curl -fsSL https://bun.sh/install | bash"},
	{"Deno", []string{"deno"}, "curl -fsSL https://deno.land/install.sh | sh"},
	{"Go", []string{"go"}, "install Go: https://go.dev/dl"},
	{"Java", []string{"java"}, "brew install openjdk, or apt install default-jre"},
	{".NET", []string{"dotnet", "dnx"}, "install .NET: https://dotnet.microsoft.com/download"},
	{"Rust", []string{"cargo"}, "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"},
	{"pnpm", []string{"pnpm", "pnpx"}, "npm install -g pnpm"},
	{"Yarn", []string{"yarn"}, "npm install -g yarn"},
}

// findOutsidePath returns the path of a command that is not in the PATH. It searches the folders that users' shells
// usually add to it.
func findOutsidePath(command string) string {
	folders := []string{"/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin"}
	if home, err := os.UserHomeDir(); err == nil {
		for _, below := range []string{
			".local/bin", ".bun/bin", ".deno/bin", ".cargo/bin", ".volta/bin", ".asdf/shims", ".local/share/mise/shims",
			"go/bin", ".nvm/versions/node/*/bin", ".local/share/fnm/node-versions/*/installation/bin",
		} {
			folders = append(folders, filepath.Join(home, below))
		}
	}
	for _, folder := range folders {
		found, _ := filepath.Glob(filepath.Join(folder, command))
		for _, f := range slices.Backward(found) {
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return f
			}
		}
	}
	return ""
}
