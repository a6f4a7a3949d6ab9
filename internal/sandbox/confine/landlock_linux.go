package confine

import (
	"os"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
)

// applyLandlock forbids three things, as far as the kernel supports it: paths that the plan does not name; TCP; and
// signals and abstract sockets to processes outside the sandbox. If the process has its own namespaces, Landlock is a
// second line of defence. Otherwise no interpreter is started unless Landlock works.
func (p *SandboxPlan) applyLandlock() error {
	rules := []landlock.Rule{}
	if len(p.Argv) > 0 {
		rules = append(rules, landlock.RWFiles(devices...).IgnoreIfMissing())
		rules = append(
			rules, landlock.RODirs(p.readablePaths(true)...).IgnoreIfMissing(),
			landlock.ROFiles(p.readablePaths(false)...).IgnoreIfMissing(),
		)
	}
	for _, m := range p.Mounts {
		switch {
		case p.Weak:
		case m.Device:
			rules = append(rules, landlock.RWFiles(m.Target).WithIoctlDev())
		case m.Writable && isDir(m.Target):
			rules = append(rules, landlock.RWDirs(m.Target).WithRefer())
		case m.Writable:
			rules = append(rules, landlock.RWFiles(m.Target))
		}
	}
	if p.Tmp > 0 && !p.Weak {
		rules = append(rules, landlock.RWDirs("/tmp"))
	}
	if p.Network != NoNetwork && !p.Weak {
		rules = append(rules, landlock.ConnectTCP(ProxyPort))
	}
	if p.Weak && len(p.Argv) > 0 {
		// Nothing else separates this program from the machine's files.
		if err := landlock.V1.Restrict(rules...); err != nil {
			return err
		}
	}
	return landlock.V6.BestEffort().Restrict(rules...)
}

// readablePaths returns the directories (or, if dirs is false, the files) that the process may read and execute. If
// the process has its own root file system, that is the whole root. In a container, the plan can restrict it to the
// paths of its mounts.
func (p *SandboxPlan) readablePaths(dirs bool) []string {
	var paths []string
	named := p.Weak || p.Contained && len(p.Mounts) > 0
	if !named && dirs {
		return []string{"/"}
	}
	for _, m := range p.Mounts {
		if named && !m.Empty && isDir(m.Source) == dirs {
			paths = append(paths, m.Source)
		}
	}
	if p.Weak && p.Proc && !dirs {
		paths = append(paths, "/proc/self/maps") // a C library finds the end of the stack there
	}
	if p.Harness != "" && dirs {
		paths = append(paths, p.Harness)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
