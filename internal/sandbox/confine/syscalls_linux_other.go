//go:build linux && !amd64 && !arm64

package confine

// filter refuses: nobody has written a list of system calls for this
// architecture.
func (*Plan) filter(*interpreter) error { return ErrUnsupported }
