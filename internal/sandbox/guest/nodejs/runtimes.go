package nodejs

import (
	"fmt"
	"strings"
)

// Runtime is a program that runs the script.
type Runtime struct {
	Name string // "node", which the script says of itself too, and how the program is usually called

	// Env is all that the program needs of an environment.
	Env []string
	// Proc says that it does not start without a /proc.
	Proc bool

	flags  []string
	memory string // the flags that limit the heap, with %d for megabytes, or empty
}

// sweepAtOnce has V8 give back the memory of buffers while it collects garbage. Else a thread does
// so later, which a program that makes many large buffers outruns by more than its limit.
const sweepAtOnce = "--no-concurrent-array-buffer-sweeping"

// Runtimes are those that the script knows: Node.js 20.16 or newer, Bun 1.2 or
// newer, Deno 2.2 or newer.
func Runtimes() []Runtime {
	return []Runtime{
		// Without the file, Node looks for one at a place that it may not be able to
		// read, and gives up.
		{Name: "node", Env: []string{"OPENSSL_CONF=/dev/null"}, flags: []string{"--no-warnings"}, memory: "--max-old-space-size=%d " + sweepAtOnce},
		// Bun has no limit of its own: whoever starts it must watch its memory.
		{Name: "bun", Proc: true, flags: []string{"run", "--no-install", "--no-env-file", "--config=/dev/null"}},
		// Nothing but its time zone is open to Deno, and no cache of anything.
		{Name: "deno", Proc: true, Env: []string{"DENO_DIR=/tmp"}, flags: []string{"run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm", "--cached-only", "--no-code-cache", "--allow-env=TZ"}, memory: "--v8-flags=--max-old-space-size=%d," + sweepAtOnce},
	}
}

// Args are the arguments that stand before the path of the script, for a process
// whose heap may have so many bytes. The limit cannot be changed later: the one in
// the start frame is what messages speak of. It does not count what buffers
// hold, so the memory of the process must be watched all the same.
//
// The environment must be Env and nothing else.
func (r Runtime) Args(memory int64) []string {
	args := append([]string(nil), r.flags...)
	if r.memory != "" {
		args = append(args, strings.Fields(fmt.Sprintf(r.memory, max(memory>>20, 1)))...)
	}
	return args
}

// OutOfMemory tells by what a process wrote on its standard error that it ended
// for want of memory. Node and Deno abort when the heap is full.
func OutOfMemory(stderr string) bool {
	for _, words := range []string{"JavaScript heap out of memory", "Fatal JavaScript out of memory", "out of memory"} {
		if strings.Contains(stderr, words) {
			return true
		}
	}
	return false
}
