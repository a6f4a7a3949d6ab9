package packaging

import (
	"bytes"
	"errors"
	"fmt"
	"text/template"
)

// brewSystem is an operating system for which the Homebrew formula has archives.
type brewSystem struct {
	Name     string // as in the formula: "macos" or "linux"
	Archives []brewArchive
}

type brewArchive struct{ CPU, URL, SHA256 string }

// Formula returns the Homebrew formula of a release. It installs the archives for macOS and Linux that files contains.
// If files contains none of them, Formula returns an error.
func Formula(text []byte, version string, accounts Accounts, files []ReleaseFile) ([]byte, error) {
	if err := CheckVersion(version); err != nil {
		return nil, err
	}
	t, err := template.New("retort.rb").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	systems := brewSystems(version, accounts, files)
	if len(systems) == 0 {
		return nil, fmt.Errorf("the checksums list no archive of version %s for macOS or Linux", version)
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		Owner, Version string
		Systems        []brewSystem
	}{accounts.Owner, version, systems})
	if err == nil && bytes.Contains(b.Bytes(), []byte("<no value>")) {
		err = errors.New("retort.rb: a value is missing")
	}
	return b.Bytes(), err
}

func brewSystems(version string, accounts Accounts, files []ReleaseFile) (systems []brewSystem) {
	for _, s := range []struct{ name, os string }{{"macos", "darwin"}, {"linux", "linux"}} {
		system := brewSystem{Name: s.name}
		for _, c := range []struct{ name, arch string }{{"arm", "arm64"}, {"intel", "amd64"}} {
			name := Platform{s.os, c.arch}.fileName(version, "tar.gz")
			for _, f := range files {
				if f.Name == name {
					archive := brewArchive{c.name, accounts.downloadURL(version, name), f.SHA256}
					system.Archives = append(system.Archives, archive)
				}
			}
		}
		if len(system.Archives) > 0 {
			systems = append(systems, system)
		}
	}
	return systems
}
