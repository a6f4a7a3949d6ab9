package memory

import (
	"strings"
	"testing"
)

const meminfo = "MemTotal:       16777216 kB\nMemFree:        100 kB\n"

// TestAuto checks the memory limit that is computed from the control group files of various kernels and containers.
func TestAuto(t *testing.T) {
	const first = "25 24 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n30 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 25 0:28 %s /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	v1 := func(root string) string { return replaceFirst(first, root) }
	v2 := func(root string) string {
		return "29 1 0:26 " + root + " /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	}
	const none1 = "9223372036854771712\n"
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing is known":          {nil, unknown},
		"no group":                  {map[string]string{"/proc/meminfo": meminfo}, 4 << 30},
		"version 2":                 {files("0::/a/b\n", v2("/"), "/sys/fs/cgroup/a/b/memory.max", "536870912\n"), 256 << 20},
		"version 2, the parent's":   {files("0::/a/b\n", v2("/"), "/sys/fs/cgroup/a/b/memory.max", "max\n", "/sys/fs/cgroup/a/memory.max", "1073741824\n"), 512 << 20},
		"version 2, both":           {files("0::/a/b\n", v2("/"), "/sys/fs/cgroup/a/b/memory.max", "2147483648\n", "/sys/fs/cgroup/a/memory.max", "1073741824\n"), 512 << 20},
		"version 2, none":           {files("0::/a\n", v2("/"), "/sys/fs/cgroup/a/memory.max", "max\n"), 4 << 30},
		"version 2, in a container": {files("0::/\n", v2("/"), "/sys/fs/cgroup/memory.max", "536870912\n"), 256 << 20},
		"version 1":                 {files("9:name=systemd:/\n4:cpu:/x\n3:memory,hugetlb:/a\n0::/\n", v1("/"), "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "536870912\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes", none1), 256 << 20},
		"version 1, in a container": {files("3:memory:/docker/1\n", v1("/docker/1"), "/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"), 256 << 20},
		"version 1, none":           {files("3:memory:/a\n", v1("/"), "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", none1), 4 << 30},
		"nonsense":                  {files("3:memory\n::\nx", "a - b\n - \n", "/memory.max", "1"), 4 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			if got := autoLimit(func(name string) string { return tt.files[name] }); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
	if AutoLimit() <= 0 {
		t.Error("there is no limit on this machine")
	}
}

func files(groups, mounts string, more ...string) map[string]string {
	all := map[string]string{"/proc/meminfo": meminfo, "/proc/self/cgroup": groups, "/proc/self/mountinfo": mounts}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func replaceFirst(format, root string) string {
	before, after, _ := strings.Cut(format, "%s")
	return before + root + after
}
