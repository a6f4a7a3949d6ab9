//go:build amd64 || arm64

package confine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// containerProfile represents an allow list of system calls in the format of Docker and Podman.
type containerProfile struct {
	Default  string              `json:"defaultAction"`
	Errno    uint                `json:"defaultErrnoRet"`
	Machines []containerMachine  `json:"archMap"`
	Syscalls []containerSyscalls `json:"syscalls"`
}

// containerMachine makes a container's seccomp profile apply to the other ABIs (calling conventions) of its processor,
// too. Otherwise the container's filter would kill a thread that makes a call of another ABI. With it, the guest's own
// filter refuses the call with an error code.
type containerMachine struct {
	Machine string   `json:"architecture"`
	Others  []string `json:"subArchitectures"`
}

type containerSyscalls struct {
	Names  []string            `json:"names"`
	Action string              `json:"action"`
	Errno  uint                `json:"errnoRet,omitempty"`
	Args   []containerArgument `json:"args,omitempty"`
}

type containerArgument struct {
	Index int    `json:"index"`
	Value uint64 `json:"value"`
	Two   uint64 `json:"valueTwo"`
	Op    string `json:"op"`
}

const (
	allow  = "SCMP_ACT_ALLOW"
	refuse = "SCMP_ACT_ERRNO"
)

// setupCalls lists the system calls that the first process of a container needs to confine itself with EnterContained
// and to become an interpreter. Afterwards its own filter is stricter than the container's.
var setupCalls = []uintptr{
	unix.SYS_EXECVE, unix.SYS_SECCOMP, unix.SYS_CAPSET, unix.SYS_CAPGET, unix.SYS_PRCTL, unix.SYS_PRLIMIT64,
	unix.SYS_SETRLIMIT, unix.SYS_FCNTL,
	unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF,
}

// listenCalls lists the system calls that a relay needs to open its listener before it confines itself.
var listenCalls = []uintptr{unix.SYS_BIND, unix.SYS_LISTEN}

// ContainerProfile returns the allow list of system calls for the containers of a runtime, as JSON. The list has the
// calls of the sandbox and those that the first process needs to confine itself. If the network is Relayed, it also
// has the calls of the relay, which starts the guest as another process.
func ContainerProfile(profile string, network NetworkMode) ([]byte, error) {
	lists, ok := profiles[profile]
	if !ok {
		return nil, fmt.Errorf("there is no profile %q", profile)
	}
	lists = append(slices.Clone(lists), fileCalls, setupCalls)
	rules := (&SandboxPlan{Profile: profile, Network: network, Ring: network == NoNetwork && SharesMemory(profile)}).conditionalRules(nil)
	if network == Relayed {
		lists = append(append(lists, profiles["relay"]...), listenCalls)
		rules = append(rules, syscallRule{number: unix.SYS_CLONE, conditions: []argumentCondition{{0, noneSet, namespaces}}})
	}
	plain := map[string]bool{}
	for _, list := range lists {
		for _, number := range list {
			plain[nameOf(number)] = true
		}
	}
	machines := []containerMachine{
		{"SCMP_ARCH_X86_64", []string{"SCMP_ARCH_X86", "SCMP_ARCH_X32"}},
		{"SCMP_ARCH_AARCH64", []string{"SCMP_ARCH_ARM"}},
	}
	p := containerProfile{
		Default: refuse, Errno: uint(unix.ENOSYS), Machines: machines,
		Syscalls: []containerSyscalls{{Names: slices.Sorted(maps.Keys(plain)), Action: allow}},
	}
	for _, r := range rules {
		name := nameOf(r.number)
		if plain[name] {
			continue
		}
		p.Syscalls = append(p.Syscalls, containerSyscalls{Names: []string{name}, Action: allow, Args: containerArguments(r.conditions)})
	}
	// It has a rule of its own for runtimes that ignore defaultErrnoRet: C libraries fall back only if clone3 is
	// missing (ENOSYS).
	p.Syscalls = append(p.Syscalls, containerSyscalls{Names: []string{"clone3"}, Action: refuse, Errno: uint(unix.ENOSYS)})
	return json.MarshalIndent(p, "", "\t")
}

// containerArguments converts the conditions of a rule to the format of container runtimes, which has at most one
// condition for each argument.
func containerArguments(conditions []argumentCondition) (args []containerArgument) {
	for _, c := range conditions {
		a := containerArgument{Index: c.argument, Value: c.value, Op: "SCMP_CMP_EQ"}
		switch c.test {
		case anySet: // of one bit
			a.Two, a.Op = c.value, "SCMP_CMP_MASKED_EQ"
		case noneSet:
			a.Op = "SCMP_CMP_MASKED_EQ"
		}
		if last := len(args) - 1; last >= 0 && args[last].Index == a.Index {
			args[last].Value |= a.Value
			args[last].Two |= a.Two
			continue
		}
		args = append(args, a)
	}
	return args
}

func nameOf(number uintptr) string {
	if name := names[number]; name != "" {
		return name
	}
	return olderNames[number]
}
