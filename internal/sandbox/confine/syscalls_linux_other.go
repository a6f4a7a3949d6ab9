//go:build linux && !amd64 && !arm64

package confine

// filter returns an error: there is no list of system calls for this architecture.
func (*Plan) filter(*interpreter) error { return ErrUnsupported }
