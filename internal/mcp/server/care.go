package server

import (
	"encoding/json"
	"strings"

	"retort/internal/core"
)

// careArguments holds the arguments of execute_code with which a client asks for stricter rules than those of the
// settings. The pipeline refuses values that are less strict.
type careArguments struct {
	ForceApproval   bool            `json:"force_approval"`
	MemoryLimit     json.RawMessage `json:"memory_limit"`
	AllowNetwork    *bool           `json:"allow_network"`
	FilesystemScope string          `json:"filesystem_scope"`
}

// applyTo copies the arguments into the request for an execution. It returns an error if the memory limit is invalid.
func (c careArguments) applyTo(r *core.ExecutionRequest) error {
	r.ForceApproval, r.AllowNetwork, r.FilesystemScope = c.ForceApproval, c.AllowNetwork, c.FilesystemScope
	if len(c.MemoryLimit) == 0 || string(c.MemoryLimit) == "null" {
		return nil
	}
	var err *core.Error
	r.Limits.Memory, err = core.ParseMemory(strings.Trim(string(c.MemoryLimit), `"`))
	if err != nil {
		return err
	}
	return nil
}
