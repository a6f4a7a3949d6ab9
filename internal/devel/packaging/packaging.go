// Package packaging makes the files of a release that GoReleaser does not make: bundles that desktop clients install
// with one click, npm packages, the Homebrew formula, bills of materials, the provenance statement, and the entry in
// the registry of MCP servers. Equal input produces equal bytes.
package packaging

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// BundleName returns the file name of a bundle.
func BundleName(version string, p Platform) string { return p.fileName(version, "mcpb") }

// ReadVersion returns the member "version" of a bundle manifest or registry entry.
func ReadVersion(document []byte) (string, error) {
	var d struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return "", err
	}
	if d.Version == "" {
		return "", errors.New("there is no version in it")
	}
	return d.Version, CheckVersion(d.Version)
}

// WriteBundle writes a bundle for one platform: the manifest, adapted to the platform, and the binary.
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
		return nil, errors.New("manifest.json: there is no server in it")
	}
	start, ok := server["mcp_config"].(map[string]any)
	if !ok {
		return nil, errors.New("manifest.json: there is no server.mcp_config in it")
	}
	server["entry_point"] = "server/" + p.binaryName()
	start["command"] = "${__dirname}/server/" + p.binaryName()
	m["compatibility"] = map[string]any{"platforms": []string{p.nodeOS()}}
	return encodeIndented(m)
}

// RegistryEntry returns the entry for the registry of MCP servers. The entry lists the bundles as packages.
func RegistryEntry(template []byte, accounts Accounts, bundles []ReleaseFile) ([]byte, error) {
	text, err := accounts.fill(template, nil)
	if err != nil {
		return nil, fmt.Errorf("server.json: %w", err)
	}
	version, err := ReadVersion(text)
	if err != nil {
		return nil, fmt.Errorf("server.json: %w", err)
	}
	var e map[string]any
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("server.json: %w", err)
	}
	packages, _ := e["packages"].([]any)
	for _, b := range bundles {
		packages = append(packages, map[string]any{
			"registryType": "mcpb", "fileSha256": b.SHA256, "transport": map[string]any{"type": "stdio"},
			"identifier": accounts.downloadURL(version, b.Name),
		})
	}
	e["packages"] = packages
	return encodeIndented(e)
}

func encodeIndented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
