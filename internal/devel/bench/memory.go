package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// residentMB returns the resident memory of a process in MB. It reads /proc, so it works only on Linux.
func residentMB(pid int) (float64, error) { return statusMB(pid, "VmRSS:") }

// uniqueMB returns the anonymous resident memory of a process in MB. It does not include the pages of the binary,
// which several processes share.
func uniqueMB(pid int) (float64, error) { return statusMB(pid, "RssAnon:") }

// proportionalMB returns a process's proportional share of anonymous memory in MB: pages that several processes have
// mapped are divided among them, so that the sum over all processes counts them once.
func proportionalMB(pid int) (float64, error) {
	own, err := procFieldMB(pid, "smaps_rollup", "Pss_Anon:")
	if err != nil {
		return 0, err
	}
	mapped, err := procFieldMB(pid, "smaps_rollup", "Pss_Shmem:")
	return own + mapped, err
}

func statusMB(pid int, name string) (float64, error) { return procFieldMB(pid, "status", name) }

// procFieldMB returns a value from a process's file in /proc, converted from kB to MB.
func procFieldMB(pid int, file, name string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1000, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/%s has no %s", pid, file, name)
}

// childPIDs returns the ids of the child processes of a process.
func childPIDs(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var pids []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, pid := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(pid); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// descendantPIDs returns the ids of all descendants of a process: its children, their children, and so on.
func descendantPIDs(pid int) []int {
	var all []int
	for _, child := range childPIDs(pid) {
		all = append(append(all, child), descendantPIDs(child)...)
	}
	return all
}

// processName returns the command name of a process.
func processName(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	first, _, _ := strings.Cut(string(line), "\x00")
	return filepath.Base(strings.Trim(first, "[]"))
}
