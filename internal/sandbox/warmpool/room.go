package warmpool

import (
	"bytes"
	"os"
	"strconv"
)

// minFreeMemory is the available memory, in bytes, below which the pool keeps no guests ready. A waiting guest takes
// 10 to 60 MB.
const minFreeMemory = 512 << 20

// hasRoom reports whether the machine has enough available memory to keep guests ready.
func hasRoom() bool {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return true
	}
	_, after, found := bytes.Cut(data, []byte("MemAvailable:"))
	fields := bytes.Fields(after)
	if !found || len(fields) == 0 {
		return true
	}
	kb, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return err != nil || kb<<10 >= minFreeMemory
}
