package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// CheckStatus says how severe the result of a check is.
type CheckStatus string

// Values of CheckStatus. Broken means that Retort cannot do its work.
const (
	OK      CheckStatus = "ok"
	Warning CheckStatus = "warning"
	Broken  CheckStatus = "broken"
	Mended  CheckStatus = "mended"
)

// CheckResult holds the result of one check.
type CheckResult struct {
	Name  string      `json:"name"`
	Level CheckStatus `json:"level"`
	Words string      `json:"words"`
	Mend  string      `json:"mend,omitempty"`
}

const (
	leastDisk  = 64 << 20  // free bytes below which Retort cannot work
	littleDisk = 512 << 20 // free bytes below which a warning is given
	patience   = 3 * time.Second
	maxCounted = 200_000 // files whose sizes are added up
)

// Limits of open files. CheckFiles reports an engine as broken if it may open fewer than leastFiles, and warns below
// littleFiles. A program needs about ten files, a server four.
const (
	leastFiles  = 256
	littleFiles = 1024
)

// CheckFiles checks how many files this process may have open. It returns nothing if the limit is high enough.
func CheckFiles() []CheckResult {
	if most, known := openFiles(); known {
		return checkFileLimit(most)
	}
	return nil
}

func checkFileLimit(most uint64) []CheckResult {
	switch {
	case most >= littleFiles:
		return nil
	case most < leastFiles:
		return []CheckResult{{"files", Broken, fmt.Sprintf("this process may open only %d files, but programs need more", most), "ulimit -n 4096"}}
	}
	return []CheckResult{{
		"files", Warning,
		fmt.Sprintf("this process may open only %d files, which is too few for many programs or servers", most),
		"ulimit -n 4096",
	}}
}

// CheckFolder checks that a folder exists, that only this user can access it, and that files can be written there.
// With fix set, it creates the folder and corrects the permissions.
func CheckFolder(name, dir string, fix bool) []CheckResult {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []CheckResult{checkAbsent(name, dir, fix)}
	}
	if err != nil {
		return []CheckResult{{name, Broken, "it cannot be examined: " + err.Error(), "ls -ld " + shellQuote(dir)}}
	}
	if !info.IsDir() {
		return []CheckResult{{name, Broken, dir + " is a file, but must be a folder", "mv " + shellQuote(dir) + " " + shellQuote(dir+".old")}}
	}
	if owner, mine := ownedByMe(info); !mine {
		return []CheckResult{{
			name, Broken, fmt.Sprintf("%s belongs to %s, perhaps because a command was run with sudo", dir, owner),
			`sudo chown -R "$USER" ` + shellQuote(dir),
		}}
	}
	checks := []CheckResult{checkPermissions(name, dir, info, fix)}
	if checks[0].Level == OK {
		checks = nil
	}
	if c := checkWritable(name, dir); c != nil {
		return append(checks, *c)
	}
	return append(checks, checkSpace(name, dir))
}

func checkAbsent(name, dir string, fix bool) CheckResult {
	if !fix {
		return CheckResult{name, OK, dir + " does not exist yet; it is created when it is needed", ""}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return CheckResult{name, Broken, "it cannot be created: " + err.Error(), "mkdir -p " + shellQuote(dir)}
	}
	return CheckResult{name, Mended, "made " + dir, ""}
}

// checkPermissions reports permissions that give other users access.
func checkPermissions(name, path string, info fs.FileInfo, fix bool) CheckResult {
	mode := info.Mode().Perm()
	if !permissions || mode&0o077 == 0 {
		return CheckResult{name, OK, path, ""}
	}
	right := mode &^ 0o077
	if fix {
		if err := os.Chmod(path, right); err == nil {
			return CheckResult{name, Mended, fmt.Sprintf("%s was readable by other users (mode %o); now only you can read it", path, mode), ""}
		}
	}
	return CheckResult{name, Warning, fmt.Sprintf("%s is accessible to other users (mode %o)", path, mode), fmt.Sprintf("chmod %o %s", right, shellQuote(path))}
}

func checkWritable(name, dir string) *CheckResult {
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return &CheckResult{
			name, Broken, "it is not writable: " + err.Error(),
			"check the disk space and the owner: df -h " + shellQuote(dir) + "; ls -ld " + shellQuote(dir) + "; or choose another data directory with --home",
		}
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	return nil
}

func checkSpace(name, dir string) CheckResult {
	free, known := freeBytes(dir)
	switch {
	case !known:
		return CheckResult{name, OK, dir, ""}
	case free < leastDisk:
		return CheckResult{name, Broken, fmt.Sprintf("%s: the disk is full (%s free)", dir, FormatBytes(free)), "df -h " + shellQuote(dir)}
	case free < littleDisk:
		return CheckResult{
			name, Warning, fmt.Sprintf("%s: little disk space is left (%s)", dir, FormatBytes(free)),
			"retort workspace gc; df -h " + shellQuote(dir),
		}
	}
	return CheckResult{name, OK, fmt.Sprintf("%s, %s free", dir, FormatBytes(free)), ""}
}

// CheckKeys checks that only this user can read the given files.
func CheckKeys(name, dir string, fix bool) (checks []CheckResult) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.key"))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			continue
		}
		if c := checkPermissions(name, f, info, fix); c.Level != OK {
			checks = append(checks, c)
		}
	}
	return checks
}

// FolderSize returns the total size of the files below a folder, in bytes. If there are very many files, the result
// is a lower bound.
func FolderSize(dir string) (bytes int64) {
	counted := 0
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it may be gone
		}
		if counted++; counted > maxCounted {
			return fs.SkipAll
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// CheckClock checks the clock of the machine. behind says by how much the clock is behind the newest entry of the
// audit log.
func CheckClock(now time.Time, behind time.Duration) CheckResult {
	words := now.Format(time.RFC3339)
	switch {
	case now.Year() < 2025:
		return CheckResult{
			"clock", Broken, words + " is in the past: certificates and the audit log cannot be verified",
			"timedatectl set-ntp true, or set the clock",
		}
	case behind > 0:
		return CheckResult{
			"clock", Broken,
			fmt.Sprintf("%s is %s behind the newest entry of the audit log; calls that may have effects are refused", words, behind.Round(time.Second)),
			"correct the clock. If it is right now and was wrong before, run retort audit accept-clock",
		}
	}
	return CheckResult{"clock", OK, words, ""}
}

// ProgramVersion returns the first line that a program prints with --version. It returns "" if the program fails or
// prints nothing.
func ProgramVersion(ctx context.Context, command string) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, "--version")
	cmd.WaitDelay = patience
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line[:min(len(line), 80)]
}

// FormatBytes formats a size in bytes as text with a unit.
func FormatBytes(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 40, "TB"}, {1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}} {
		if n >= unit.size {
			return fmt.Sprintf("%.3g %s", float64(n)/float64(unit.size), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
