// Package packaging makes the files of a release other than binaries: bundles that desktop clients install with one
// click, and the entry in the registry of MCP servers.
package packaging

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// Platform names the operating system and architecture of a binary as GOOS and GOARCH do.
type Platform struct{ OS, Arch string }

// systemName returns the system's name in the manifest of a bundle.
func (p Platform) systemName() string {
	if p.OS == "windows" {
		return "win32"
	}
	return p.OS
}

func (p Platform) binaryName() string {
	if p.OS == "windows" {
		return "retort.exe"
	}
	return "retort"
}

// BundleName returns the file name of a bundle.
func BundleName(version string, p Platform) string {
	return fmt.Sprintf("retort_%s_%s_%s.mcpb", version, p.OS, p.Arch)
}

// ReadVersion returns the member "version" of a bundle manifest or registry entry.
func ReadVersion(document []byte) (string, error) {
	var d struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return "", err
	}
	if d.Version == "" {
		return "", fmt.Errorf("there is no version in it")
	}
	return d.Version, nil
}

// WriteBundle writes a bundle for one platform: the manifest, adapted to the platform, and the binary. Equal input
// produces equal bytes.
func WriteBundle(w io.Writer, manifest []byte, binary io.Reader, p Platform) error {
	text, err := RenderManifest(manifest, p)
	if err != nil {
		return err
	}
	archive := zip.NewWriter(w)
	for _, file := range []struct {
		name    string
		mode    uint32
		content io.Reader
	}{
		{"manifest.json", 0o644, bytes.NewReader(text)},
		{"server/" + p.binaryName(), 0o755, binary},
	} {
		h := &zip.FileHeader{Name: file.name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.CreatorVersion = 3 << 8 // unix, so that the mode counts
		h.ExternalAttrs = (0o100000 | file.mode) << 16
		into, err := archive.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := io.Copy(into, file.content); err != nil {
			return fmt.Errorf("%s: %w", file.name, err)
		}
	}
	return archive.Close()
}

// RenderManifest returns the manifest of a bundle for one platform.
func RenderManifest(template []byte, p Platform) ([]byte, error) {
	var m map[string]any
	if err := json.Unmarshal(template, &m); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	server, ok := m["server"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("manifest.json: there is no server in it")
	}
	start, ok := server["mcp_config"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("manifest.json: there is no server.mcp_config in it")
	}
	server["entry_point"] = "server/" + p.binaryName()
	start["command"] = "${__dirname}/server/" + p.binaryName()
	m["compatibility"] = map[string]any{"platforms": []string{p.systemName()}}
	return encodeIndented(m)
}

// ReleaseFile describes a published file of a release.
type ReleaseFile struct{ Name, SHA256 string }

var ownerName = regexp.MustCompile(`^[A-Za-z0-9](-?[A-Za-z0-9])*$`)

// placeholder stands for the account's name in the template of the registry entry. The registry rejects it as a name,
// so the template itself cannot be published by accident.
const placeholder = "@OWNER@"

// CheckOwner returns an error unless name is a valid name of an account that publishes releases.
func CheckOwner(name string) error {
	if !ownerName.MatchString(name) || strings.EqualFold(name, strings.Trim(placeholder, "@")) {
		return fmt.Errorf("%q is not the name of an account", name)
	}
	return nil
}

// RegistryEntry returns the entry for the registry of MCP servers. owner is the account that publishes the release.
// The entry lists the bundles as packages.
func RegistryEntry(template []byte, owner string, bundles []ReleaseFile) ([]byte, error) {
	if err := CheckOwner(owner); err != nil {
		return nil, err
	}
	var e map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(template), placeholder, owner)), &e); err != nil {
		return nil, fmt.Errorf("server.json: %w", err)
	}
	packages, _ := e["packages"].([]any)
	for _, b := range bundles {
		packages = append(packages, map[string]any{
			"registryType": "mcpb", "fileSha256": b.SHA256, "transport": map[string]any{"type": "stdio"},
			"identifier": fmt.Sprintf("https://github.com/%s/retort/releases/download/v%s/%s", owner, e["version"], b.Name),
		})
	}
	e["packages"] = packages
	text, err := encodeIndented(e)
	if err == nil && bytes.Contains(bytes.ToUpper(text), []byte("OWNER")) && !strings.Contains(strings.ToUpper(owner), "OWNER") {
		return nil, fmt.Errorf("server.json: OWNER stands where the account should")
	}
	return text, err
}

func encodeIndented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
