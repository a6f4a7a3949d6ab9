package packaging

import (
	"fmt"
	"regexp"
	"strings"
)

// Platform names the operating system and architecture of a binary as GOOS and GOARCH do.
type Platform struct{ OS, Arch string }

// Platforms returns the platforms of a release, in the order of .goreleaser.yaml.
func Platforms() []Platform {
	return []Platform{
		{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
		{"windows", "amd64"}, {"windows", "arm64"},
	}
}

// String returns the platform as OS/ARCH.
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// nodeOS returns the system's name in Node.js and in the manifest of a bundle.
func (p Platform) nodeOS() string {
	if p.OS == "windows" {
		return "win32"
	}
	return p.OS
}

// nodeArch returns the architecture's name in Node.js.
func (p Platform) nodeArch() string {
	if p.Arch == "amd64" {
		return "x64"
	}
	return p.Arch
}

// nodeName returns the platform's name in npm packages, such as "linux-x64".
func (p Platform) nodeName() string { return p.nodeOS() + "-" + p.nodeArch() }

func (p Platform) binaryName() string {
	if p.OS == "windows" {
		return "retort.exe"
	}
	return "retort"
}

// fileName returns the name of a release file for the platform, with the given ending.
func (p Platform) fileName(version, ending string) string {
	return fmt.Sprintf("retort_%s_%s_%s.%s", version, p.OS, p.Arch, ending)
}

// versionPattern matches versions as semver.org defines them, without build metadata, which file names and image
// tags cannot contain.
var versionPattern = regexp.MustCompile(
	`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// CheckVersion returns an error unless version is a semantic version without "v" and without build metadata. Checked
// versions are safe in file names, URLs, JSON and Ruby.
func CheckVersion(version string) error {
	if len(version) > 64 || !versionPattern.MatchString(version) {
		return fmt.Errorf("%q is not a semantic version, such as 1.2.3 or 1.2.3-rc.1", version)
	}
	return nil
}

// ReleaseFile describes a published file of a release. SHA256 is in lowercase hexadecimal digits.
type ReleaseFile struct{ Name, SHA256 string }

var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._+~-]*)$`)

// ParseSums reads the text of SHA256SUMS. It accepts only plain file names, and each once.
func ParseSums(text []byte) ([]ReleaseFile, error) {
	var files []ReleaseFile
	seen := map[string]bool{}
	for number, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		m := sumLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d of the checksums is not a digest, two spaces and a file name", number+1)
		}
		if seen[m[2]] {
			return nil, fmt.Errorf("line %d of the checksums lists %s again", number+1, m[2])
		}
		seen[m[2]] = true
		files = append(files, ReleaseFile{Name: m[2], SHA256: m[1]})
	}
	return files, nil
}
