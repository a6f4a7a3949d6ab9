package doctor

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// knownMessages lists the messages that programs print before they exit, each with its cause. In the texts about a
// cause, $1 stands for the first non-empty group of the pattern. The first entry whose pattern matches is used.
var knownMessages = []struct {
	id    string
	says  string // a regular expression
	words string
	mend  string
}{
	{
		"node_too_old",
		`(?i)EBADENGINE|unsupported engine|requires? node(?:\.js)? ?(?:version)? ?(?:>=|v?\d)|(?:fetch|ReadableStream|File|CustomEvent|structuredClone|crypto) is not defined|Unexpected token '(?:\?\?=|\|\|=|\?|\.)'|ERR_REQUIRE_ESM|ERR_UNKNOWN_BUILTIN_MODULE|Promise\.withResolvers is not a function|does not provide an export named`,
		"the installed version of Node.js is too old for it",
		"node --version; install Node.js 22 or later: nvm install 22, brew install node, or https://nodejs.org",
	},
	{
		"python_too_old",
		`(?i)requires a different python|requires-python|requires python ?>=|no interpreter found for python|python version .* is not supported`,
		"it does not support the installed version of Python", "python3 --version; uv python install 3.12",
	},
	{
		"docker_not_running",
		`(?i)cannot connect to the docker daemon|is the docker daemon running|error during connect.*docker`,
		"Docker is installed, but is not running", "start Docker Desktop, or sudo systemctl start docker",
	},
	{
		"docker_denied", `(?i)permission denied while trying to connect to the docker (?:daemon|api)`,
		"this user may not use Docker", `sudo usermod -aG docker "$USER", then log in again`,
	},
	{
		"docker_image",
		`(?i)pull access denied for ([^\s,]+)|manifest (?:for )?(\S+) (?:unknown|not found)|no such image:? (\S+)`,
		"there is no such image: $1", "correct the image in its args; for a private one, docker login",
	},
	{
		"package_not_found",
		`(?i)npm (?:err!|error) (?:code E)?404[^\n]*?'?((?:@[\w.-]+/)?[\w.-]+)?'?|No solution found when resolving[^\n]*|Could not find a version that satisfies the requirement (\S+)|was not found in the package registry`,
		"the package that its command runs does not exist in the registry",
		"correct the package's name in its args; if it is private, log in with npm login",
	},
	{
		"registry_unreachable",
		`(?i)npm (?:err!|error) (?:code )?(?:ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|network)|failed to fetch: .?https://pypi|error sending request for url|Temporary failure in name resolution|NewConnectionError`,
		"the registry of its package cannot be reached",
		"check the network and the proxy: npm config get registry, npm ping",
	},
	{
		"registry_certificate",
		`SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERTIFICATE_VERIFY_FAILED|invalid peer certificate`,
		"it does not trust the certificate of an address that it uses; this happens behind company proxies",
		`add to its env: "NODE_EXTRA_CA_CERTS": "/path/to/company-ca.pem" (for Python: "SSL_CERT_FILE")`,
	},
	{
		"script_missing",
		`can't open file '?([^':]+)'?:|Cannot find module '((?:/|[A-Za-z]:\\)[^']+)'|error: Module not found "([^"]+)"`,
		"its args name a file that does not exist: $1", "correct the path in its args",
	},
	{
		"module_missing", `(?:Cannot find (?:module|package)) '([^']+)'|ERR_MODULE_NOT_FOUND`,
		"a module that it needs is missing: $1",
		"npm install in the folder of the server; if its args name a file, check that path",
	},
	{
		"module_missing", `No module named '?([\w.]+)'?|ImportError: ([^\n]+)`,
		"a module that it needs is missing: $1",
		"install it for the Python that its command runs, or start the server with uvx",
	},
	{
		"command_not_found",
		`(?m)(?:sh|bash|env|zsh)(?:: line \d+|: \d+)?:? ['‘]?([\w./-]+)['’]?: (?:command )?(?:not found|No such file or directory)`,
		"it needs the command $1, which is not in its PATH", "install $1, or give its full path",
	},
	{
		"port_taken", `EADDRINUSE[^\n]*?(?:[:.](\d{2,5}))?|(?i:address already in use)`,
		"the port that it needs is in use by another process",
		"end the other process (find it with lsof -iTCP -sTCP:LISTEN), or give the server another port",
	},
	{
		"refused_login",
		`(?i)\b(?:401 unauthorized|bad credentials|invalid (?:api[ _-]?key|token|credentials)|authentication failed|unauthorized: )`,
		"the service behind it does not accept its credentials", "renew the token in its env",
	},
	{
		"missing_setting",
		`(?i)\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b[^\n]{0,60}?(?:is )?(?:required|missing|not set|not found|must be set|undefined)`,
		"it needs the environment variable $1", "set $1 in its env",
	},
	{
		"missing_setting", `(?i)(?:missing|set|provide|required)[^\n]{0,40}?\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b`,
		"it needs the environment variable $1", "set $1 in its env",
	},
	{
		"missing_setting",
		`(?i)(api[ _-]?key|access token|credentials?|environment variable)[^\n]{0,40}?(?:required|missing|not (?:set|provided|found|configured))`,
		"it needs a setting that it does not have: $1", "see the server's own instructions for its env",
	},
	{
		"bad_arguments",
		`(?mi)^\s*usage: |unknown (?:option|flag|argument)|unrecognized arguments?|missing required argument|error: unexpected argument`,
		"it does not understand its arguments", "correct args in its configuration",
	},
	{"disk_full", `ENOSPC|(?i:no space left on device)`, "the disk is full", "df -h"},
	{
		"folder_missing",
		`(?i)cannot access directory:? ([^\s,]+)|ENOENT[^\n]*?, (?:scandir|lstat|stat|chdir|access) '([^']+)'|NotADirectoryError[^\n]*'([^']+)'`,
		"a folder or file in its args or env does not exist: $1",
		"correct that path in its configuration, or create it",
	},
	{"too_many_files", `EMFILE|ENFILE|(?i:too many open files)`, "it has too many files open", "run ulimit -n 4096 before you start the client"},
	{
		"out_of_memory", `(?i)heap out of memory|MemoryError|signal: killed|OOMKilled|Cannot allocate memory`,
		"it ran out of memory, or was killed",
		"give it more memory, for example with NODE_OPTIONS=--max-old-space-size=4096 in its env",
	},
	{
		"no_access", `EACCES|EPERM|(?i:permission denied)`, "it has no permission to open a file that it needs",
		"see its last lines of output, and check the owner of that file",
	},
	{
		"older_protocol", `(?i)unsupported protocol version|protocol version .*not supported|version mismatch`,
		"it uses a version of the protocol that Retort does not support, or does not name one", "update the server",
	},
	{
		"upstream_refused", `ECONNREFUSED ?(\S*)`, "the service that it needs does not answer: $1",
		"start that service, or correct its address in its env",
	},
	{
		"not_found_dns", `ENOTFOUND ?(\S*)|EAI_AGAIN ?(\S*)`,
		"the address of the service that it needs cannot be resolved: $1",
		"correct that address in its env, or check the network",
	},
}

// messagePatterns returns the compiled regular expressions of knownMessages. It compiles them on first use,
// because compiling them at every start would take longer than everything else before main.
var messagePatterns = sync.OnceValue(func() []*regexp.Regexp {
	all := make([]*regexp.Regexp, len(knownMessages))
	for i, w := range knownMessages {
		all[i] = regexp.MustCompile(w.says)
	}
	return all
})

// readyPattern returns a pattern for the messages that HTTP servers print when they are ready.
var readyPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:listening|running|started|available|serving)[^\n]{0,40}?(?:https?://\S+|port:? ?\d{2,5}|:\d{4,5}\b)`)
})

// explainOutput derives the cause of a process's failure from its output.
func explainOutput(s FailureSymptom) *FailureCause {
	if s.Command == "" {
		return nil
	}
	said := s.allText()
	for i, w := range knownMessages {
		m := messagePatterns()[i].FindStringSubmatch(said)
		if m == nil {
			continue
		}
		found := ""
		for _, group := range m[1:] {
			if found = strings.TrimSpace(group); found != "" {
				break
			}
		}
		fill := func(text string) string {
			return strings.TrimSuffix(strings.ReplaceAll(text, "$1", found), ": ")
		}
		return &FailureCause{w.id, fill(w.words), fill(w.mend)}
	}
	return explainSilence(s)
}

// explainSilence explains the failure of a process whose output contains no known message.
func explainSilence(s FailureSymptom) *FailureCause {
	by := s.commandLine()
	pending := s.Pending || strings.Contains(s.Message, "did not answer")
	if m := readyPattern().FindString(strings.Join(append(s.Stderr, s.Rubbish...), "\n")); m != "" && pending {
		return &FailureCause{
			"not_stdio", fmt.Sprintf("it serves HTTP instead of standard input and output: %q", m),
			"start it separately and set its address as url instead of command, or correct its args: " + by,
		}
	}
	switch {
	case len(s.Rubbish) > 0 && pending:
		return &FailureCause{
			"not_stdio", fmt.Sprintf("it prints text and does not answer messages: %.120s", s.Rubbish[0]),
			"it may be a server for HTTP, or need an argument such as stdio: " + by,
		}
	case strings.Contains(s.Message, "the server process ended: exit status 0"):
		return &FailureCause{"ended_at_once", "it ended at once, without an error: it may not be a server, or may need an argument such as stdio", by}
	case strings.Contains(s.Message, "the server process ended"):
		said := ""
		if len(s.Stderr) > 0 {
			said = "; its last output: " + strings.Join(s.Stderr[max(0, len(s.Stderr)-3):], " | ")
		}
		_, how, _ := strings.Cut(s.Message, "the server process ended: ")
		return &FailureCause{"ended", "it ended during its start: " + how + said, by}
	}
	return nil
}

// explainTimeout explains why a server may not have answered in time.
func explainTimeout(s FailureSymptom) *FailureCause {
	if !s.Pending && !strings.Contains(s.Message, "did not answer") {
		return nil
	}
	waited := fmt.Sprintf("it did not answer within %s", s.Waited.Round(time.Second))
	for _, a := range append([]string{s.Command}, s.Args...) {
		if a == "npx" || a == "uvx" || a == "bunx" || a == "pipx" || s.Command == "docker" {
			return &FailureCause{
				"slow", waited + "; on its first start it may still be downloading its package",
				"run it once by hand until it waits for input: " + s.commandLine(),
			}
		}
	}
	if s.URL != "" {
		return &FailureCause{"slow", waited, "curl -sS -m 10 -o /dev/null -w '%{http_code}\\n' " + shellQuote(s.URL)}
	}
	return &FailureCause{"slow", waited, "run it by hand to see what it waits for: " + s.commandLine()}
}
