//go:build linux && !amd64 && !arm64

package confine

// loadFilter returns an error, because there is no list of system calls for this architecture.
func (*SandboxPlan) loadFilter(*heldInterpreter) error { return ErrUnsupported }
