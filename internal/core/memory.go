package core

import (
	"math"
	"strconv"
	"strings"
)

// leastMemory is the minimum memory limit that a request may set for a program, in bytes.
const leastMemory = 8 << 20

// ParseMemory parses the memory limit of a request, such as 256MB, 1g, or a number of bytes. Units are powers of
// 1024. The error has kind invalid_arguments.
func ParseMemory(written string) (int64, *Error) {
	digits := strings.IndexFunc(written, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(written)
	}
	unit, known := map[string]int64{
		"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
		"g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30,
	}[strings.ToLower(strings.TrimSpace(written[digits:]))]
	n, err := strconv.ParseInt(written[:digits], 10, 64)
	switch {
	case err != nil || !known || n > math.MaxInt64/unit:
		return 0, Errorf(KindInvalidArguments, "run", "memory_limit: expected a size such as 256MB, or bytes")
	case n*unit < leastMemory:
		return 0, Errorf(KindInvalidArguments, "run", "memory_limit: the minimum is %d MB", leastMemory>>20)
	}
	return n * unit, nil
}
