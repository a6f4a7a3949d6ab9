package memory

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// unknown is the amount of memory, in bytes, that is assumed if neither a control group nor the system reports any.
const unknown = 1 << 30

// AutoLimit returns the memory that an engine may use on this machine, in bytes. This is half of the memory limit of
// this process's control group. Without such a limit, it is a quarter of the machine's memory.
func AutoLimit() int64 {
	read := func(name string) string {
		text, _ := os.ReadFile(name)
		return string(text)
	}
	return autoLimit(read)
}

func autoLimit(read func(name string) string) int64 {
	machine := totalMemory(read("/proc/meminfo"))
	group := groupLimit(read)
	switch {
	case group > 0 && (machine == 0 || group < machine):
		return group / 2
	case machine > 0:
		return machine / 4
	}
	return unknown
}

// totalMemory returns the machine's memory in bytes, from /proc/meminfo. It returns 0 if the file does not contain it.
func totalMemory(meminfo string) int64 {
	_, rest, _ := strings.Cut(meminfo, "MemTotal:")
	kib, _ := strconv.ParseInt(firstField(rest), 10, 64)
	return kib << 10
}

func firstField(s string) string {
	if fields := strings.Fields(s); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

// groupLimit returns the smallest memory limit, in bytes, of this process's control groups of versions 1 and 2. It
// returns 0 if they set no limit.
func groupLimit(read func(name string) string) (least int64) {
	groups, mounts := read("/proc/self/cgroup"), read("/proc/self/mountinfo")
	for _, line := range strings.Split(groups, "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		file := "memory.max"
		if parts[1] != "" {
			file = "memory.limit_in_bytes"
		}
		if parts[1] == "" || hasWord(parts[1], "memory") {
			least = smallerLimit(least, leastLimit(mountOf(mounts, parts[1] != ""), parts[2], file, read))
		}
	}
	return least
}

// cgroupMount holds the directory at which a control group hierarchy is mounted, and the control group that is the
// root of the mount.
type cgroupMount struct{ root, at string }

// mountOf finds the mount of a control group (cgroup) hierarchy in the text of /proc/self/mountinfo. If first is set,
// this is the memory hierarchy of cgroup version 1. Otherwise it is the single hierarchy of cgroup version 2.
func mountOf(mounts string, first bool) cgroupMount {
	for _, line := range strings.Split(mounts, "\n") {
		before, after, _ := strings.Cut(line, " - ")
		where, kind := strings.Fields(before), strings.Fields(after)
		if len(where) < 5 || len(kind) < 3 {
			continue
		}
		if first && kind[0] == "cgroup" && hasWord(kind[2], "memory") || !first && kind[0] == "cgroup2" {
			return cgroupMount{root: where[3], at: where[4]}
		}
	}
	return cgroupMount{}
}

func hasWord(list, word string) bool {
	for _, w := range strings.Split(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// leastLimit returns the smallest memory limit of a control group and of those ancestors that are visible in the mount
// m.
func leastLimit(m cgroupMount, group, file string, read func(name string) string) (least int64) {
	if m.at == "" {
		return 0
	}
	below := strings.TrimPrefix(group, strings.TrimSuffix(m.root, "/"))
	for dir := path.Join("/", below); ; dir = path.Dir(dir) {
		n, err := strconv.ParseInt(strings.TrimSpace(read(path.Join(m.at, dir, file))), 10, 64)
		if err == nil { // "max" is no number
			least = smallerLimit(least, n)
		}
		if dir == "/" {
			return least
		}
	}
}

// smallerLimit returns the smaller of two limits. A limit of 0 means no limit.
func smallerLimit(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
