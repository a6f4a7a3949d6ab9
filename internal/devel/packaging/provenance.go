package packaging

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Build describes how the files of a release were built.
type Build struct {
	Version  string
	Commit   string // full hash of the commit
	Modified bool   // whether the working copy differed from the commit
	DryRun   bool   // whether the build is only a trial and not published
	Go       string // version of Go
	GoSum    []byte // content of go.sum
}

// statement is an in-toto statement, version 1, with a predicate of SLSA provenance, version 1.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	Definition struct {
		Type         string         `json:"buildType"`
		External     map[string]any `json:"externalParameters"`
		Internal     map[string]any `json:"internalParameters"`
		Dependencies []resource     `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	Run struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

var commitID = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Provenance returns the provenance statement of a release: an in-toto statement with the files as its subjects and
// SLSA provenance as its predicate. It is not signed. The statement of a dry run names a different builder, so that it
// cannot be taken for that of a release.
func Provenance(accounts Accounts, b Build, files []ReleaseFile) ([]byte, error) {
	if err := b.check(files); err != nil {
		return nil, err
	}
	modules, err := moduleResources(b.GoSum)
	if err != nil {
		return nil, err
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, f := range files {
		s.Subject = append(s.Subject, resource{Name: f.Name, Digest: map[string]string{"sha256": f.SHA256}})
	}
	source := "git+" + accounts.repository() + "@refs/tags/v" + b.Version
	definition := &s.Predicate.Definition
	definition.Type = accounts.repository() + "/blob/v" + b.Version + "/docs/contributing/releasing.md#build-type"
	definition.External = map[string]any{"source": source, "version": b.Version, "dryRun": b.DryRun}
	definition.Internal = map[string]any{"go": b.Go, "modified": b.Modified}
	commit := resource{URI: source, Digest: map[string]string{"gitCommit": b.Commit}}
	definition.Dependencies = append([]resource{commit}, modules...)
	s.Predicate.Run.Builder.ID = accounts.Builder
	if b.DryRun {
		s.Predicate.Run.Builder.ID += "#dry-run"
	}
	return encodeIndented(s)
}

func (b Build) check(files []ReleaseFile) error {
	if err := CheckVersion(b.Version); err != nil {
		return err
	}
	switch {
	case !commitID.MatchString(b.Commit):
		return fmt.Errorf("%q is not the full name of a commit", b.Commit)
	case b.Modified && !b.DryRun:
		return errors.New("the working copy differs from the commit; commit the changes before a release")
	case b.Go == "":
		return errors.New("the version of Go is missing")
	case len(files) == 0:
		return errors.New("the checksums list no files")
	}
	return nil
}

// moduleResources returns the modules that go.sum lists, with their hashes in hexadecimal digits, as in-toto
// requires.
func moduleResources(goSum []byte) ([]resource, error) {
	var list []resource
	for number, line := range strings.Split(strings.TrimSpace(string(goSum)), "\n") {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("go.sum, line %d: not a module, a version and a hash", number+1)
		}
		if strings.HasSuffix(fields[1], "/go.mod") {
			continue
		}
		hash, found := strings.CutPrefix(fields[2], "h1:")
		sum, err := base64.StdEncoding.DecodeString(hash)
		if !found || err != nil {
			return nil, fmt.Errorf("go.sum, line %d: %q is not a hash", number+1, fields[2])
		}
		digest := map[string]string{"dirHash": hex.EncodeToString(sum)}
		list = append(list, resource{URI: modulePURL(fields[0], fields[1]), Digest: digest})
	}
	return list, nil
}
