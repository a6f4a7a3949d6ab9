package nodejs

import (
	"fmt"
	"strings"
)

// Runtime describes a JavaScript runtime that can run the guest's script: Node.js, Bun or Deno.
type Runtime struct {
	Name string // name of the runtime, such as "node"; also the usual name of its executable

	// Env is the complete environment of the process.
	Env []string
	// Proc reports whether the runtime needs a /proc to start.
	Proc bool

	flags []string
	// memory holds the flags that limit the heap, with %d for the number of megabytes. It is empty if the runtime has
	// no such flag.
	memory string
}

// sweepAtOnce is the option that makes V8 free the memory of buffers during garbage collection. By default a
// background thread does that later. A program that creates many large buffers would exceed its memory limit in the
// meantime.
const sweepAtOnce = "--no-concurrent-array-buffer-sweeping"

// Runtimes returns the supported runtimes: Node.js 20.16 or newer, Bun 1.2 or newer, Deno 2.2 or newer.
func Runtimes() []Runtime {
	return []Runtime{
		// Without this setting, Node looks for a file that it may not be able to read, and exits.
		{
			Name: "node", Env: []string{"OPENSSL_CONF=/dev/null"}, flags: []string{"--no-warnings"},
			memory: "--max-old-space-size=%d " + sweepAtOnce,
		},
		// Bun has no limit of its own, so its memory must be watched from outside.
		{Name: "bun", Proc: true, flags: []string{"run", "--no-install", "--no-env-file", "--config=/dev/null"}},
		// Deno may read only its time zone, and uses no cache.
		{
			Name: "deno", Proc: true, Env: []string{"DENO_DIR=/tmp"},
			flags: []string{
				"run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm", "--cached-only",
				"--no-code-cache", "--allow-env=TZ",
			},
			memory: "--v8-flags=--max-old-space-size=%d," + sweepAtOnce,
		},
	}
}

// Args returns the arguments before the path of the script. The argument memory limits the runtime's heap, in bytes.
// That limit cannot be changed after the start. Error messages therefore name the program's own limit, from its start
// frame. The heap does not include the content of buffers, so the memory of the process must be watched, too. The
// environment must be exactly Env.
func (r Runtime) Args(memory int64) []string {
	args := append([]string(nil), r.flags...)
	if r.memory != "" {
		args = append(args, strings.Fields(fmt.Sprintf(r.memory, max(memory>>20, 1)))...)
	}
	return args
}

// OutOfMemory reports whether a runtime's standard error states that it ran out of memory. Node and Deno abort when
// the heap is full.
func OutOfMemory(stderr string) bool {
	for _, words := range []string{"JavaScript heap out of memory", "Fatal JavaScript out of memory", "out of memory"} {
		if strings.Contains(stderr, words) {
			return true
		}
	}
	return false
}
