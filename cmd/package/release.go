package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"retort/internal/devel/packaging"
)

// release holds the data that all commands need.
type release struct {
	stdout   io.Writer
	folder   *string // folder that contains the templates and accounts
	version  string
	accounts packaging.Accounts
	licence  []byte
}

// load reads the version, the accounts and the licence text.
func (r *release) load() error {
	manifest, err := r.template("manifest.json")
	if err != nil {
		return err
	}
	if r.version, err = packaging.ReadVersion(manifest); err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	accounts, err := r.template("accounts.env")
	if err != nil {
		return err
	}
	if r.accounts, err = packaging.ParseAccounts(accounts); err != nil {
		return err
	}
	r.licence, err = os.ReadFile("LICENSE")
	return err
}

func (r *release) template(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(*r.folder, filepath.FromSlash(name)))
}

func (r *release) printVersion(flags *flag.FlagSet, args []string) error {
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(r.stdout, r.version)
	return err
}

func (r *release) buildWrapper(flags *flag.FlagSet, args []string) error {
	out := flags.String("out", "bin/release/files", "folder to write to")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	return r.create(*out, packaging.WrapperName(r.version), func(w io.Writer) error {
		return packaging.WriteWrapper(w, os.DirFS(filepath.Join(*r.folder, "npm")), r.version, r.accounts, r.licence)
	})
}

func (r *release) buildPlatform(flags *flag.FlagSet, args []string) error {
	out := flags.String("out", "bin/release/files", "folder to write to")
	binary := flags.String("binary", "", "the binary")
	at := flags.String("time", "", "time of the commit, as in RFC 3339")
	var p packaging.Platform
	flags.StringVar(&p.OS, "os", "", "operating system of the binary: linux, darwin or windows")
	flags.StringVar(&p.Arch, "arch", "", "architecture of the binary: amd64 or arm64")
	if err := parse(flags, args, "binary", "os", "arch", "time"); err != nil {
		return err
	}
	if !slices.Contains(packaging.Platforms(), p) {
		return fmt.Errorf("%s is not a platform of a release", p)
	}
	if err := r.load(); err != nil {
		return err
	}
	committed, err := time.Parse(time.RFC3339, *at)
	if err != nil {
		return err
	}
	// The bill of materials comes first, because it fails unless the file is a binary of Go.
	if err := r.bill(*out, *binary, p, committed); err != nil {
		return err
	}
	return errors.Join(r.bundle(*out, *binary, p), r.platformPackage(*out, *binary, p))
}

func (r *release) bundle(out, binary string, p packaging.Platform) error {
	manifest, err := r.template("manifest.json")
	if err != nil {
		return err
	}
	return withFile(binary, func(in *os.File) error {
		return r.create(out, packaging.BundleName(r.version, p), func(w io.Writer) error {
			return packaging.WriteBundle(w, manifest, in, p)
		})
	})
}

func (r *release) platformPackage(out, binary string, p packaging.Platform) error {
	return withFile(binary, func(in *os.File) error {
		info, err := in.Stat()
		if err != nil {
			return err
		}
		templates := os.DirFS(filepath.Join(*r.folder, "npm"))
		return r.create(out, packaging.PlatformPackageName(r.version, p), func(w io.Writer) error {
			return packaging.WritePlatformPackage(w, templates, r.version, r.accounts, r.licence, in, info.Size(), p)
		})
	})
}

func (r *release) bill(out, binary string, p packaging.Platform, committed time.Time) error {
	build, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	sum, err := digest(binary)
	if err != nil {
		return err
	}
	described := packaging.Binary{Build: build, SHA256: sum, Platform: p, Time: committed}
	text, err := packaging.SBOM(r.version, r.accounts, described)
	if err != nil {
		return err
	}
	return r.create(out, packaging.SBOMName(r.version, p), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func (r *release) writeFormula(flags *flag.FlagSet, args []string) error {
	return r.writeFromSums(flags, args, func(files []packaging.ReleaseFile) ([]byte, error) {
		template, err := r.template("homebrew/retort.rb")
		if err != nil {
			return nil, err
		}
		return packaging.Formula(template, r.version, r.accounts, files)
	})
}

func (r *release) writeEntry(flags *flag.FlagSet, args []string) error {
	return r.writeFromSums(flags, args, func(files []packaging.ReleaseFile) ([]byte, error) {
		template, err := r.template("server.json")
		if err != nil {
			return nil, err
		}
		bundles := slices.DeleteFunc(files, func(f packaging.ReleaseFile) bool {
			return !strings.HasSuffix(f.Name, ".mcpb")
		})
		if len(bundles) == 0 {
			return nil, errors.New("the checksums list no bundles")
		}
		return packaging.RegistryEntry(template, r.accounts, bundles)
	})
}

func (r *release) writeProvenance(flags *flag.FlagSet, args []string) error {
	b := packaging.Build{Go: runtime.Version()}
	flags.StringVar(&b.Commit, "commit", "", "full name of the commit")
	flags.BoolVar(&b.Modified, "modified", false, "the working copy differs from the commit")
	flags.BoolVar(&b.DryRun, "dry-run", false, "the files are not published")
	return r.writeFromSums(flags, args, func(files []packaging.ReleaseFile) (text []byte, err error) {
		b.Version = r.version
		if b.GoSum, err = os.ReadFile("go.sum"); err != nil {
			return nil, err
		}
		return packaging.Provenance(r.accounts, b, files)
	})
}

// writeFromSums creates a file. render makes its content from the list of files in SHA256SUMS.
func (r *release) writeFromSums(flags *flag.FlagSet, args []string,
	render func([]packaging.ReleaseFile) ([]byte, error),
) error {
	sums := flags.String("sums", "", "file with the checksums of the release")
	out := flags.String("out", "", "file to write")
	if err := parse(flags, args, "sums", "out"); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	list, err := os.ReadFile(*sums)
	if err != nil {
		return err
	}
	files, err := packaging.ParseSums(list)
	if err != nil {
		return fmt.Errorf("%s: %w", *sums, err)
	}
	text, err := render(files)
	if err != nil {
		return err
	}
	return r.create(filepath.Dir(*out), filepath.Base(*out), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// create creates a file with the output of write, and prints the file's name. If write fails, it leaves no file.
func (r *release) create(folder, name string, write func(io.Writer) error) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	path := filepath.Join(folder, name)
	into, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(into), into.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	_, err = fmt.Fprintln(r.stdout, path)
	return err
}

func withFile(name string, use func(*os.File) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return use(f)
}

// digest returns the SHA-256 digest of a file in hexadecimal digits.
func digest(name string) (sum string, err error) {
	err = withFile(name, func(f *os.File) error {
		h := sha256.New()
		_, err := io.Copy(h, f)
		sum = hex.EncodeToString(h.Sum(nil))
		return err
	})
	return sum, err
}
