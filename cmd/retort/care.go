package main

import (
	"strconv"

	"github.com/spf13/pflag"

	"retort/internal/core"
)

// careFlags holds the flags of retort run with which a user restricts one program more than the settings do.
type careFlags struct {
	approval               bool
	memory, network, files string
}

func (c *careFlags) addTo(flags *pflag.FlagSet) {
	flags.BoolVar(&c.approval, "force-approval", false,
		"ask a person to approve the program, even if the settings would approve the program automatically")
	flags.StringVar(&c.memory, "memory-limit", "",
		"memory limit of the program, such as 128MB; the limit must be lower than resourceLimits.memory")
	flags.StringVar(&c.network, "allow-network", "", "with the value false, the program cannot use the network")
	flags.StringVar(
		&c.files, "filesystem-scope", "",
		"files that the program may access: workspace-only, read-only, none, or a folder such as ./workspace/reports",
	)
}

// applyTo adds the restrictions that the flags set to the request for running a program.
func (c careFlags) applyTo(r *core.ExecutionRequest) error {
	r.ForceApproval, r.FilesystemScope = c.approval, c.files
	if c.memory != "" {
		limit, err := core.ParseMemory(c.memory)
		if err != nil {
			return err
		}
		r.Limits.Memory = limit
	}
	if c.network != "" {
		allowed, err := strconv.ParseBool(c.network)
		if err != nil {
			return core.Errorf(core.KindInvalidArguments, "run", "--allow-network must be true or false")
		}
		r.AllowNetwork = &allowed
	}
	return nil
}
