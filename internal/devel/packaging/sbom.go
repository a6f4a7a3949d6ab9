package packaging

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// Binary describes a built binary: the build information that Go recorded in it, the SHA-256 digest of its bytes
// in lowercase hexadecimal digits, and the time of the commit that it was built from.
type Binary struct {
	Build    *debug.BuildInfo
	SHA256   string
	Platform Platform
	Time     time.Time
}

// SBOMName returns the file name of the bill of materials of a binary.
func SBOMName(version string, p Platform) string { return p.fileName(version, "spdx.json") }

// spdxDocument is a bill of materials in the format SPDX 2.3.
type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	DataLicense   string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID               string          `json:"SPDXID"`
	Name             string          `json:"name"`
	Version          string          `json:"versionInfo,omitempty"`
	FileName         string          `json:"packageFileName,omitempty"`
	Purpose          string          `json:"primaryPackagePurpose"`
	Download         string          `json:"downloadLocation"`
	FilesAnalyzed    bool            `json:"filesAnalyzed"`
	Checksums        []spdxChecksum  `json:"checksums,omitempty"`
	LicenseConcluded string          `json:"licenseConcluded"`
	LicenseDeclared  string          `json:"licenseDeclared"`
	Copyright        string          `json:"copyrightText"`
	Comment          string          `json:"comment,omitempty"`
	References       []spdxReference `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const (
	spdxNoAssertion = "NOASSERTION"
	spdxRoot        = "SPDXRef-Package-retort"
)

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// SBOM returns the bill of materials of a binary in the format SPDX 2.3. It lists the Go modules that are linked into
// the binary and Go's standard library, as Go recorded them at build time. It makes no statement about their licences.
func SBOM(version string, accounts Accounts, b Binary) ([]byte, error) {
	if err := CheckVersion(version); err != nil {
		return nil, err
	}
	if !hexDigest.MatchString(b.SHA256) {
		return nil, fmt.Errorf("%q is not a SHA-256 digest", b.SHA256)
	}
	if b.Build == nil || b.Build.GoVersion == "" || b.Time.IsZero() {
		return nil, errors.New("the binary has no build information, or its commit has no time")
	}
	packages := []spdxPackage{rootPackage(version, accounts, b), standardLibrary(b.Build.GoVersion)}
	for _, m := range b.Build.Deps {
		packages = append(packages, modulePackage(m))
	}
	name := SBOMName(version, b.Platform)
	return encodeIndented(spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: accounts.repository() + "/spdx/" + name + "-" + b.SHA256,
		Creation:  spdxCreation{b.Time.UTC().Format(time.RFC3339), []string{"Tool: retort-package-" + version}},
		Packages:  packages, Relationships: relationships(packages),
	})
}

func rootPackage(version string, accounts Accounts, b Binary) spdxPackage {
	p := newSPDXPackage(spdxRoot, "retort", version)
	p.Purpose, p.FileName, p.LicenseDeclared = "APPLICATION", b.Platform.binaryName(), "Apache-2.0"
	p.Checksums = []spdxChecksum{{"SHA256", b.SHA256}}
	p.Download = "git+" + accounts.repository() + "@v" + version
	return p
}

func standardLibrary(goVersion string) spdxPackage {
	version, _, _ := strings.Cut(strings.TrimPrefix(goVersion, "go"), " ") // experiments follow a space
	p := newSPDXPackage("SPDXRef-Package-stdlib", "stdlib", version)
	p.References = []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/stdlib@" + version}}
	return p
}

// modulePackage describes a Go module as an SPDX package. A module that was replaced by a folder of this
// repository has no version.
func modulePackage(m *debug.Module) spdxPackage {
	used := m
	if m.Replace != nil {
		used = m.Replace
	}
	if used.Version == "" || used.Version == "(devel)" {
		p := newSPDXPackage(moduleID(m.Path, ""), m.Path, "")
		p.Comment = "This module is part of the Retort repository."
		return p
	}
	p := newSPDXPackage(moduleID(used.Path, used.Version), used.Path, used.Version)
	p.References = []spdxReference{{"PACKAGE-MANAGER", "purl", modulePURL(used.Path, used.Version)}}
	if used.Sum != "" {
		p.Comment = "The module's hash in go.sum is " + used.Sum
	}
	return p
}

func newSPDXPackage(id, name, version string) spdxPackage {
	return spdxPackage{
		ID: id, Name: name, Version: version, Purpose: "LIBRARY", Download: spdxNoAssertion,
		LicenseConcluded: spdxNoAssertion, LicenseDeclared: spdxNoAssertion, Copyright: spdxNoAssertion,
	}
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]`)

// moduleID returns an identifier for a module. Every other character than SPDX allows in identifiers becomes its
// hexadecimal code, so that the identifiers of two modules differ.
func moduleID(path, version string) string {
	return "SPDXRef-Module-" + notInID.ReplaceAllStringFunc(path+"@"+version, func(s string) string {
		return fmt.Sprintf("-x%X-", s)
	})
}

// modulePURL returns the package URL of a module.
func modulePURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

func relationships(packages []spdxPackage) []spdxRelationship {
	list := []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", spdxRoot}}
	for _, p := range packages[1:] {
		list = append(list, spdxRelationship{spdxRoot, "DEPENDS_ON", p.ID})
	}
	return list
}
