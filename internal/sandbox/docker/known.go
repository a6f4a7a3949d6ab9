package docker

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// knownVulnerability describes a vulnerability of some versions of a component that would let a program escape from
// its container or reach the daemon.
type knownVulnerability struct {
	component string
	fixed     []string // first fixed version of each release series; older versions of a series are vulnerable
	cve       string
	what      string
}

// knownVulnerabilityList lists known vulnerabilities by CVE number, newest first. It omits those that a program
// cannot use. CVE-2026-41579 needs a hostile image and gains little, and images are built here or pinned.
// CVE-2026-50195 needs the right to create Kubernetes pods.
var knownVulnerabilityList = []knownVulnerability{
	{
		"runc", []string{"1.2.8", "1.3.3", "1.4.0"}, "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881",
		"masked paths and mounts can be redirected",
	},
	{"containerd", []string{"1.6.38", "1.7.27", "2.0.4"}, "CVE-2024-40635", "a user ID that is too large becomes root"},
	{"runc", []string{"1.1.14", "1.2.0"}, "CVE-2024-45310", "files can be created on the machine"},
	{"runc", []string{"1.1.12", "1.2.0"}, "CVE-2024-21626", "a file descriptor of the machine leaks into the container"},
	{"containerd", []string{"1.4.13", "1.5.10", "1.6.1"}, "CVE-2022-23648", "an image can expose files of the machine"},
	{"runc", []string{"1.0.0"}, "CVE-2021-30465", "mounts can be redirected"},
	{"containerd", []string{"1.3.9", "1.4.3"}, "CVE-2020-15257", "the daemon's own sockets can be reached"},
	{"runc", []string{"1.0.0"}, "CVE-2019-5736", "the machine's runc can be replaced"},
	{"docker desktop", []string{"4.44.3"}, "CVE-2025-9074", "containers can reach the daemon itself"},
}

// knownVulnerabilities describes the known vulnerabilities of the versions that a daemon reports, or returns "". It
// can be wrong for packages of Linux distributions, which fix old versions without changing the version number.
func knownVulnerabilities(versions map[string]string) string {
	var found []string
	for component, version := range versions {
		var all []string
		latest := ""
		for _, h := range knownVulnerabilityList {
			if h.component == component && h.affectsVersion(version) {
				all = append(all, h.cve)
				if latest == "" {
					latest = strings.Join(h.fixed, " or ")
				}
			}
		}
		if len(all) > 0 {
			found = append(
				found,
				fmt.Sprintf(
					"%s %s has known vulnerabilities (%s) unless its distribution has fixed them: install %s or later", component,
					version, strings.Join(all, ", "), latest,
				),
			)
		}
	}
	return strings.Join(sortedCopy(found), "; ")
}

// affectsVersion reports whether a version has the vulnerability. In a release series with a fixed version, all
// versions before that one are affected. A version of any other series is affected if it is older than the last fixed
// version in the list.
func (h knownVulnerability) affectsVersion(version string) bool {
	have, ok := parseVersion(version)
	if !ok {
		return false
	}
	for _, f := range h.fixed {
		fixed, _ := parseVersion(f)
		if have[0] == fixed[0] && have[1] == fixed[1] {
			return compareVersions(have, fixed) < 0
		}
	}
	last, _ := parseVersion(h.fixed[len(h.fixed)-1])
	return compareVersions(have, last) < 0
}

var versionNumbers = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(-rc|~rc)?`)
})

// parseVersion parses the start of a version string. A release candidate counts as older than its release.
func parseVersion(version string) (n [4]int, ok bool) {
	m := versionNumbers().FindStringSubmatch(strings.TrimSpace(version))
	if m == nil {
		return n, false
	}
	for i := range 3 {
		n[i], _ = strconv.Atoi(m[i+1])
	}
	if m[4] != "" {
		n[3] = -1
	}
	return n, true
}

func compareVersions(a, b [4]int) int {
	for i := range a {
		if a[i] != b[i] {
			return a[i] - b[i]
		}
	}
	return 0
}
