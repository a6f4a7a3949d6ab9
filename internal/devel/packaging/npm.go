package packaging

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// WrapperName returns the file name of the npm package that users install.
func WrapperName(version string) string { return "retort-npm-" + version + ".tgz" }

// PlatformPackageName returns the file name of the npm package with the binary of a platform.
func PlatformPackageName(version string, p Platform) string {
	return "retort-npm-" + p.nodeName() + "-" + version + ".tgz"
}

// WriteWrapper writes the npm package that users install. It has a script as "retort", and depends optionally on the
// package of every platform, of which npm installs only the fitting one. templates is the folder packaging/npm.
func WriteWrapper(w io.Writer, templates fs.FS, version string, accounts Accounts, licence []byte) error {
	if err := CheckVersion(version); err != nil {
		return err
	}
	dependencies := map[string]any{}
	for _, p := range Platforms() {
		dependencies[accounts.NPMScope+"/retort-"+p.nodeName()] = version
	}
	values := map[string]string{"@VERSION@": version}
	n := npmPackage{templates: templates, folder: "wrapper", values: values, accounts: accounts}
	files, err := n.files(map[string]any{"optionalDependencies": dependencies})
	if err != nil {
		return err
	}
	script, err := fs.ReadFile(templates, "wrapper/bin/retort.js")
	if err != nil {
		return err
	}
	files = append(files, bytesFile("LICENSE", 0o644, licence), bytesFile("bin/retort.js", 0o755, script))
	return writeTarball(w, files)
}

// WritePlatformPackage writes the npm package with the binary of a platform, which has size bytes.
func WritePlatformPackage(w io.Writer, templates fs.FS, version string, accounts Accounts, licence []byte,
	binary io.Reader, size int64, p Platform,
) error {
	if err := CheckVersion(version); err != nil {
		return err
	}
	values := map[string]string{"@VERSION@": version, "@PLATFORM@": p.nodeName()}
	n := npmPackage{templates: templates, folder: "platform", values: values, accounts: accounts}
	files, err := n.files(map[string]any{"os": []string{p.nodeOS()}, "cpu": []string{p.nodeArch()}})
	if err != nil {
		return err
	}
	program := tarFile{"bin/" + p.binaryName(), 0o755, size, binary}
	return writeTarball(w, append(files, bytesFile("LICENSE", 0o644, licence), program))
}

// npmPackage is an npm package whose templates are in one folder.
type npmPackage struct {
	templates fs.FS
	folder    string
	values    map[string]string
	accounts  Accounts
}

// files returns package.json, to which it adds the given members, and the README of the package.
func (n npmPackage) files(members map[string]any) ([]tarFile, error) {
	manifest, err := n.render("package.json")
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(manifest, &m); err != nil {
		return nil, fmt.Errorf("%s/package.json: %w", n.folder, err)
	}
	for name, value := range members {
		m[name] = value
	}
	if manifest, err = encodeIndented(m); err != nil {
		return nil, err
	}
	page, err := n.render("README.md")
	if err != nil {
		return nil, err
	}
	return []tarFile{bytesFile("package.json", 0o644, manifest), bytesFile("README.md", 0o644, page)}, nil
}

func (n npmPackage) render(name string) ([]byte, error) {
	template, err := fs.ReadFile(n.templates, n.folder+"/"+name)
	if err != nil {
		return nil, err
	}
	text, err := n.accounts.fill(template, n.values)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", n.folder, name, err)
	}
	return text, nil
}

// tarFile is a file of a tarball. content must have exactly size bytes.
type tarFile struct {
	name    string
	mode    int64
	size    int64
	content io.Reader
}

func bytesFile(name string, mode int64, content []byte) tarFile {
	return tarFile{name, mode, int64(len(content)), bytes.NewReader(content)}
}

// packageTime is the modification time of all files in npm packages. It is the time that npm itself uses.
var packageTime = time.Date(1985, 10, 26, 8, 15, 0, 0, time.UTC)

// writeTarball writes files as npm packs them, below the folder "package".
func writeTarball(w io.Writer, files []tarFile) error {
	z := gzip.NewWriter(w)
	archive := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: "package/" + f.name, Mode: f.mode, Size: f.size, ModTime: packageTime, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(archive, f.content); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return z.Close()
}
