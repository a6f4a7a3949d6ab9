// Command package builds the files of a Retort release other than the binaries of the command.
//
//	package -binary FILE -os OS -arch ARCH [-out DIR]   builds a bundle for desktop clients
//	package -owner ACCOUNT [-out DIR]                   builds the entry for the MCP registry from the bundles in DIR
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"retort/internal/devel/packaging"
)

func main() {
	templates := flag.String("templates", "packaging", "folder with manifest.json and server.json")
	out := flag.String("out", "bin/release", "folder to write to")
	binary := flag.String("binary", "", "binary to bundle")
	owner := flag.String("owner", "", "account that publishes the release")
	var p packaging.Platform
	flag.StringVar(&p.OS, "os", "", "operating system of the binary: linux, darwin or windows")
	flag.StringVar(&p.Arch, "arch", "", "architecture of the binary: amd64 or arm64")
	flag.Parse()
	var err error
	switch {
	case *binary != "" && *owner == "" && p.OS != "" && p.Arch != "":
		err = bundle(*templates, *out, *binary, p)
	case *owner != "" && *binary == "":
		err = entry(*templates, *out, *owner)
	default:
		err = errors.New("give either -binary, -os and -arch, or -owner")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func bundle(templates, out, binary string, p packaging.Platform) error {
	manifest, err := os.ReadFile(filepath.Join(templates, "manifest.json"))
	if err != nil {
		return err
	}
	version, err := packaging.ReadVersion(manifest)
	if err != nil {
		return err
	}
	in, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	name := filepath.Join(out, packaging.BundleName(version, p))
	into, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := errors.Join(packaging.WriteBundle(into, manifest, in, p), into.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	fmt.Println(name)
	return nil
}

func entry(templates, out, owner string) error {
	template, err := os.ReadFile(filepath.Join(templates, "server.json"))
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(out, "*.mcpb"))
	if err != nil {
		return err
	}
	var bundles []packaging.ReleaseFile
	for _, name := range names {
		sum, err := digest(name)
		if err != nil {
			return err
		}
		bundles = append(bundles, packaging.ReleaseFile{Name: filepath.Base(name), SHA256: sum})
	}
	if len(bundles) == 0 {
		return fmt.Errorf("there are no bundles in %s", out)
	}
	text, err := packaging.RegistryEntry(template, owner, bundles)
	if err != nil {
		return err
	}
	name := filepath.Join(out, "server.json")
	fmt.Println(name)
	return os.WriteFile(name, text, 0o644)
}

func digest(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
