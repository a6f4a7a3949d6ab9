package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
)

const (
	imageRepository = "retort/guest"
	guestPath       = confine.ProgramPath // path of this binary in a container
	importTimeout   = 3 * time.Minute
	tagLength       = 24
)

// guestImage represents the image of all containers of one runtime. The image is built on this machine from this
// binary and, for an interpreter, the interpreter's files. It is never pulled.
type guestImage struct {
	runtime string
	guest   string                   // path of this binary on the host
	i       *interpreter.Interpreter // interpreter in the image; nil for the built-in runtime
	base    string                   // base image as NAME@DIGEST; empty if the settings name none
	// labels of the containers that are created only to build the image and never started
	labels  map[string]string
	network *interpreter.ProxyNetwork // how programs reach their network proxy; nil if they have no network access
	command *hostcmd.HostCommand      // the only command in the image; nil if the image is for programs

	mu    sync.Mutex
	ready string   // name of the image, once the daemon has it
	argv  []string // command line of the interpreter; nil for the built-in runtime
	env   []string
	empty []string
	files []imageFile
	tag   string
}

// imageFile represents a file of an image.
type imageFile struct {
	inside, source string // paths in the image and on the host; source is empty if data holds the content
	data           []byte
	program        bool // data is the content of an executable file
}

// fileMode returns the permission bits of a file whose content is in the field data instead of being copied from the
// host: 0755 if the file can be executed, otherwise 0644.
func (f imageFile) fileMode() int64 {
	if f.program {
		return 0o755
	}
	return 0o644
}

// ensureImage builds the image if the daemon does not have it yet. It returns the name of the image.
func (m *guestImage) ensureImage(ctx context.Context, a *engineAPI) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready != "" {
		return m.ready, nil
	}
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	if err := m.gatherFiles(ctx, a); err != nil {
		return "", err
	}
	name := imageRepository + ":" + m.tag
	err := a.callJSON(ctx, http.MethodGet, "/images/"+name+"/json", nil, nil, nil)
	if isAnswered(err, http.StatusNotFound) {
		err = m.makeImage(ctx, a)
	}
	if err != nil {
		return "", err
	}
	m.ready = name
	m.removeOld(ctx, a)
	return name, nil
}

// readablePaths returns the paths in the container that an interpreter is allowed to read.
func (m *guestImage) readablePaths() []confine.PlanMount {
	paths := []string{interpreter.HarnessDir}
	if m.i.Proc {
		paths = append(paths, "/proc/self")
	}
	if m.base != "" {
		paths = append(paths, "/usr", "/lib", "/lib64", "/bin", "/opt")
	}
	for _, f := range m.files {
		if f.source != "" && f.inside != guestPath {
			paths = append(paths, f.inside)
		}
	}
	var list []confine.PlanMount
	for _, p := range paths {
		list = append(list, confine.PlanMount{Source: p, Target: p})
	}
	return list
}

// forgetImage makes the next request check for the image again. It is called when the daemon no longer has the image.
func (m *guestImage) forgetImage(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready == name {
		m.ready = ""
	}
}

// gatherFiles lists the files of the image and derives the image's name from them.
func (m *guestImage) gatherFiles(ctx context.Context, a *engineAPI) error {
	if m.tag != "" {
		return nil
	}
	m.files, m.empty, m.argv = []imageFile{{inside: guestPath, source: m.guest}}, []string{"/tmp", "/proc", "/dev", "/sys", "/etc"}, nil
	sum := sha256.New()
	if err := hashFile(sum, m.guest); err != nil {
		return err
	}
	if m.i != nil {
		if err := m.addInterpreter(ctx, a, sum); err != nil {
			return err
		}
		if err := m.addAuthorities(sum); err != nil {
			return err
		}
	}
	if m.command != nil {
		if err := m.addProgram(sum); err != nil {
			return err
		}
	}
	m.tag = m.runtime + "-" + hex.EncodeToString(sum.Sum(nil))[:tagLength]
	return nil
}

// addInterpreter adds to the image the files that an interpreter needs.
func (m *guestImage) addInterpreter(ctx context.Context, a *engineAPI, sum io.Writer) error {
	for name, data := range m.i.Harness() {
		m.files = append(m.files, imageFile{inside: path.Join(interpreter.HarnessDir, name), data: data})
	}
	slices.SortFunc(m.files, func(a, b imageFile) int { return strings.Compare(a.inside, b.inside) })
	for _, f := range m.files {
		fmt.Fprintf(sum, "%q %q\n", f.inside, f.data)
	}
	if m.base != "" {
		fmt.Fprintf(sum, "from %s\n", m.base)
		program, err := m.programOf(ctx, a)
		if err != nil {
			return err
		}
		m.argv = m.i.CommandLine(&interpreter.FileImage{Program: program})
		return nil
	}
	found, err := m.i.FindProgram()
	if err != nil {
		return err
	}
	needed, err := m.i.CollectImage(found)
	if err != nil {
		return err
	}
	m.argv = m.i.CommandLine(needed)
	for _, inside := range slices.Sorted(maps.Keys(needed.Sources)) {
		m.files = append(m.files, imageFile{inside: inside, source: needed.Sources[inside]})
		if err := hashTree(sum, inside, needed.Sources[inside]); err != nil {
			return err
		}
	}
	m.empty = append(m.empty, needed.Empty...)
	return nil
}

// addAuthorities adds the file of trusted certificate authorities to the image if programs have network access.
func (m *guestImage) addAuthorities(sum io.Writer) error {
	env, source := m.network.ProxyEnvironment(m.i.Env, confine.ProxyPort)
	if m.env = env; source == "" {
		return nil
	}
	m.files = append(m.files, imageFile{inside: interpreter.CertificatesPath, source: source})
	fmt.Fprintf(sum, "authorities\n")
	return hashFile(sum, source)
}

// addProgram adds a command and its shared libraries to the image. It returns an error if the command has changed
// since it was found.
func (m *guestImage) addProgram(sum io.Writer) error {
	if refused := m.command.CheckStandalone(); refused != nil {
		return refused
	}
	f, err := m.command.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err := errors.Join(err, m.command.CheckFile(f)); err != nil { // which may have changed meanwhile
		return err
	}
	needed, err := m.command.Image()
	if err != nil {
		return err
	}
	fmt.Fprintf(sum, "%q %q\n", m.command.Inside, data)
	m.files = append(m.files, imageFile{inside: m.command.Inside, data: data, program: true})
	for _, inside := range slices.Sorted(maps.Keys(needed.Sources)) {
		if inside == m.command.Inside {
			continue
		}
		m.files = append(m.files, imageFile{inside: inside, source: needed.Sources[inside]})
		fmt.Fprintf(sum, "%q\n", inside)
		if err := hashFile(sum, needed.Sources[inside]); err != nil {
			return err
		}
	}
	return nil
}

func hashFile(sum io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(sum, f)
	return err
}

// hashTree hashes the names, sizes and times of the files in a tree, so that an updated package results in another
// hash.
func hashTree(sum io.Writer, inside, source string) error {
	return filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			fmt.Fprintf(sum, "%q %q %d %d\n", inside, strings.TrimPrefix(name, source), info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
}

// makeImage lets the daemon build the image.
func (m *guestImage) makeImage(ctx context.Context, a *engineAPI) error {
	if m.base != "" {
		return m.deriveImage(ctx, a)
	}
	return a.uploadTar(
		ctx, http.MethodPost, "/images/create", url.Values{"fromSrc": {"-"}, "repo": {imageRepository}, "tag": {m.tag}},
		m.tarStream(),
	)
}

// tarStream returns a reader of the image as a tar archive. Closing the reader stops the writing of the archive.
func (m *guestImage) tarStream() io.Reader {
	read, write := io.Pipe()
	go func() {
		w := tar.NewWriter(write)
		err := m.writeTar(w)
		if err == nil {
			err = w.Close()
		}
		_ = write.CloseWithError(err)
	}()
	return read
}

func (m *guestImage) writeTar(w *tar.Writer) error {
	for _, dir := range m.empty {
		mode := int64(0o755)
		if dir == "/tmp" {
			mode = 0o1777
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(dir, "/") + "/", Mode: mode}); err != nil {
			return err
		}
	}
	for _, f := range m.files {
		if f.source == "" {
			if err := w.WriteHeader(&tar.Header{
				Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.inside, "/"), Mode: f.fileMode(), Size: int64(len(f.data)),
			}); err != nil {
				return err
			}
			if _, err := w.Write(f.data); err != nil {
				return err
			}
			continue
		}
		if err := m.writeTree(w, f); err != nil {
			return err
		}
	}
	return nil
}

// writeTree adds a file or directory of the host to the archive. It skips unneeded directories and everything that is
// neither a file nor a link. It preserves modification times, because Python uses them to check whether its compiled
// files are current.
func (m *guestImage) writeTree(w *tar.Writer, f imageFile) error {
	return filepath.WalkDir(f.source, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside := path.Join(f.inside, filepath.ToSlash(strings.TrimPrefix(name, f.source)))
		if d.IsDir() && slices.Contains(m.empty, inside) {
			return fs.SkipDir
		}
		look := os.Lstat
		if name == f.source { // which may be a link, such as /proc/self/exe
			look = os.Stat
		}
		info, err := look(name)
		if err != nil {
			return err
		}
		return writeOne(w, inside, name, info)
	})
}

func writeOne(w *tar.Writer, inside, name string, info fs.FileInfo) (err error) {
	h := &tar.Header{Name: strings.TrimPrefix(inside, "/"), Mode: 0o777, ModTime: info.ModTime().Truncate(time.Second)}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, h.Name+"/", 0o755
		return w.WriteHeader(h)
	case info.Mode()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = os.Readlink(name); err != nil {
			return err
		}
		return w.WriteHeader(h)
	case !info.Mode().IsRegular():
		return nil
	}
	h.Mode = 0o644
	if info.Mode()&0o111 != 0 {
		h.Mode = 0o755
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(w, file, h.Size)
	return err
}

// removeOld removes the images that older versions of this binary built. The daemon keeps images that are in use.
func (m *guestImage) removeOld(ctx context.Context, a *engineAPI) {
	filters, _ := json.Marshal(map[string][]string{"reference": {imageRepository}})
	var list []struct{ RepoTags []string }
	if a.callJSON(ctx, http.MethodGet, "/images/json", url.Values{"filters": {string(filters)}}, nil, &list) != nil {
		return
	}
	for _, one := range list {
		for _, name := range one.RepoTags {
			_, tag, _ := strings.Cut(name, imageRepository+":")
			if runtime, hash, ok := strings.Cut(tag, "-"); ok && runtime == m.runtime && len(hash) == tagLength && tag != m.tag {
				_ = a.callJSON(ctx, http.MethodDelete, "/images/"+name, nil, nil, nil)
			}
		}
	}
}

// elfArchitectures maps ELF machines to the architecture names that daemons use.
var elfArchitectures = map[string]elf.Machine{
	"x86_64": elf.EM_X86_64, "amd64": elf.EM_X86_64, "aarch64": elf.EM_AARCH64, "arm64": elf.EM_AARCH64,
}

// checkGuest returns an error if a binary cannot be the guest of a container, because it is for another processor or
// needs other files to run.
func checkGuest(file, architecture string) *core.Error {
	if err := interpreter.CheckStatic(file, elfArchitectures[architecture]); err != nil {
		return core.Errorf(
			core.KindSandboxUnavailable, Name, "%s cannot run as the guest of a container, which needs %s: %w", file,
			architecture, err,
		).
			WithHint("in the settings, set `docker: {guest: /path/to/retort}` to a statically linked retort binary for Linux")
	}
	return nil
}

// checkImage returns an error if the image is not named by its digest. Another name could later refer to another
// image.
func checkImage(runtime, name string) *core.Error {
	_, digest, ok := strings.Cut(name, "@sha256:")
	if raw, err := hex.DecodeString(digest); !ok || err != nil || len(raw) != sha256.Size {
		return core.Errorf(core.KindSandboxUnavailable, Name, "the image for %s is %q, which has no digest and could change", runtime, name).
			WithHint("write docker: {images: {%s: \"NAME@sha256:…\"}}; run docker images --digests to see the digest", runtime)
	}
	return nil
}

// baseImage holds the fields that this package uses from the daemon's description of an image that the settings name.
type baseImage struct {
	Config struct{ Env []string }
}

// programOf returns the path of the interpreter inside an image that the settings name.
func (m *guestImage) programOf(ctx context.Context, a *engineAPI) (string, error) {
	var base baseImage
	err := a.callJSON(ctx, http.MethodGet, "/images/"+m.base+"/json", nil, nil, &base)
	if isAnswered(err, http.StatusNotFound) {
		return "", core.Errorf(
			core.KindSandboxUnavailable, Name, "the image for %s is not on this machine: %s", m.runtime, m.base,
		).WithHint("docker pull %s", m.base)
	}
	if err != nil {
		return "", err
	}
	dirs := "/usr/local/bin:/usr/bin:/bin"
	for _, e := range base.Config.Env {
		if list, ok := strings.CutPrefix(e, "PATH="); ok {
			dirs = list
		}
	}
	var program string
	err = m.withBase(ctx, a, func(id string) error {
		for _, dir := range filepath.SplitList(dirs) {
			where := path.Join("/", dir, path.Base(m.i.Command))
			response, err := a.openResponse(ctx, http.MethodHead, "/containers/"+id+"/archive", url.Values{"path": {where}}, "", nil)
			if err == nil {
				_ = response.Body.Close()
				program = where
				return nil
			}
		}
		return core.Errorf(
			core.KindSandboxUnavailable, Name, "the image for %s does not have %s in %s", m.runtime, path.Base(m.i.Command), dirs,
		).WithHint("set another image: docker: {images: {%s: …}}", m.runtime)
	})
	return program, err
}

// deriveImage builds an image from the one that the settings name and adds the files of the guest.
func (m *guestImage) deriveImage(ctx context.Context, a *engineAPI) error {
	return m.withBase(ctx, a, func(id string) error {
		if err := a.uploadTar(ctx, http.MethodPut, "/containers/"+id+"/archive", url.Values{"path": {"/"}}, m.tarStream()); err != nil {
			return err
		}
		return a.longCall(ctx, http.MethodPost, "/commit", url.Values{"container": {id}, "repo": {imageRepository}, "tag": {m.tag}}, nil, nil)
	})
}

// withBase creates a container from the image that the settings name, calls the function do with the container's id,
// and removes the container. The container is never started.
func (m *guestImage) withBase(ctx context.Context, a *engineAPI, do func(id string) error) error {
	var made struct{ ID string }
	body := map[string]any{"Image": m.base, "Entrypoint": []string{guestPath}, "NetworkDisabled": true, "Labels": m.labels}
	if err := a.callJSON(ctx, http.MethodPost, "/containers/create", nil, body, &made); err != nil {
		return err
	}
	err := do(made.ID)
	return errors.Join(
		err,
		a.callJSON(context.WithoutCancel(ctx), http.MethodDelete, "/containers/"+made.ID, url.Values{"force": {"1"}}, nil, nil),
	)
}

func sortedCopy(list []string) []string {
	slices.Sort(list)
	return list
}
