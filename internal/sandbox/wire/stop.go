package wire

import (
	"errors"
	"fmt"
	"time"

	"retort/internal/core"
)

// ErrGone is the error of ServeProgram if the guest closed its connection without a last frame. The backend then
// determines the cause.
var ErrGone = errors.New("the guest is gone")

// StopReason describes why a program was ended from outside. A backend that ends a program passes it as the cause
// when it cancels the context of ServeProgram.
type StopReason struct {
	Status core.OutcomeStatus
	Reason *core.Error
}

func (s *StopReason) Error() string { return s.Reason.Message }

func newStop(status core.OutcomeStatus, hint, format string, args ...any) *StopReason {
	return &StopReason{
		Status: status,
		Reason: &core.Error{Kind: core.KindLimit, Op: "isolate.run", Message: fmt.Sprintf(format, args...), Hint: hint},
	}
}

// MemoryStop returns the StopReason for a program that needs more memory than limit, which is in bytes.
func MemoryStop(limit int64) *StopReason {
	return newStop(core.StatusMemoryLimit,
		"process the data in parts and keep only what the result needs",
		"the program needed more than its %s of memory", FormatBytes(limit))
}

// ThreadStop returns the StopReason for a program that has started more threads than limit allows.
func ThreadStop(limit int) *StopReason {
	return newStop(core.StatusError, "use fewer threads: tool calls run concurrently even without threads",
		"the program started more than the %d threads allowed", limit)
}

// ResultStop returns the StopReason for a program whose value is too large. The argument size is the size of the
// value as JSON, and the argument limit is the permitted size, both in bytes.
func ResultStop(size, limit int64) *StopReason {
	return newStop(core.StatusOutputLimit,
		"return a summary, or write the data to a file in ./workspace and return its path",
		"the returned value has %s, more than the %s allowed", FormatBytes(size), FormatBytes(limit))
}

// TimeoutStop returns the StopReason for a program that has not ended within its timeout, which the argument span
// states. Only active time counts.
func TimeoutStop(span time.Duration) *StopReason {
	return newStop(core.StatusTimeout,
		"make fewer or smaller steps, run independent calls concurrently with Promise.all, or use a longer timeout_ms",
		"the program had not ended after %v", span)
}

// ComputingStop returns the StopReason for a program that has reached its limit of computing time, which the argument
// span states. Time in which the program waits does not count.
func ComputingStop(span time.Duration) *StopReason {
	return newStop(core.StatusTimeout,
		"process less data or find a faster way; time in which the program waits for tools or sleeps is not counted (resourceLimits.computing)",
		"the program reached its limit of %v computing time", span)
}

func outputStop(limit int64) *StopReason {
	return newStop(core.StatusOutputLimit,
		"print less, or write the data to a file in ./workspace",
		"the program printed more than the %s allowed", FormatBytes(limit))
}

func callStop(limit int) *StopReason {
	return newStop(core.StatusCallLimit,
		"look for a tool that does more per call, or divide the work among several programs",
		"the program made more than the %d tool calls allowed", limit)
}

func cancelStop() *StopReason {
	return &StopReason{Status: core.StatusCancelled, Reason: core.Errorf(core.KindCancelled, "isolate.run", "the execution was cancelled")}
}

// FormatBytes formats a size in bytes for people: "512 MB", "1.5 GB".
func FormatBytes(n int64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	v, unit := float64(n), 0
	for v >= 1024 && unit < len(units)-1 {
		v, unit = v/1024, unit+1
	}
	if v == float64(int64(v)) || v >= 100 {
		return fmt.Sprintf("%.0f %s", v, units[unit])
	}
	return fmt.Sprintf("%.1f %s", v, units[unit])
}
