package confine

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// buildRoot replaces the root of this process with a file system that contains only what the plan names, and unmounts
// the host's file system.
func (p *SandboxPlan) buildRoot(harness map[string][]byte) error {
	// Mounts made here must not propagate to the machine, nor the other way.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return setupError("make mounts private", err)
	}
	trees, err := p.openTrees()
	if err != nil {
		return err
	}
	base, err := mountBase()
	if err != nil {
		return setupError("mount /", err)
	}
	b := &rootBuilder{base: base}
	for _, t := range trees {
		b.attachMount(t)
	}
	b.writeFiles(p.Harness, harness)
	b.mountTemporary(p.Tmp)
	b.mountProc(p.Proc)
	if b.err != nil {
		return b.err
	}
	return enterRoot(base)
}

// detachedMount represents a file or directory tree of the host that is detached from its place and held open by a
// descriptor.
type detachedMount struct {
	PlanMount
	fd    int
	isDir bool
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}

// openTrees opens all files and directories that will be mounted later, while the host's paths are still valid.
func (p *SandboxPlan) openTrees() ([]detachedMount, error) {
	var trees []detachedMount
	for _, m := range p.Mounts {
		if m.Empty {
			trees = append(trees, detachedMount{PlanMount: m, fd: -1, isDir: true})
			continue
		}
		t, err := openTree(m)
		if err != nil {
			return nil, setupError("open "+m.Source, err)
		}
		trees = append(trees, t)
	}
	if len(p.Argv) == 0 {
		return trees, nil
	}
	for _, d := range devices {
		t, err := openTree(PlanMount{Source: d, Target: d, Device: true})
		if err != nil {
			return nil, setupError("open "+d, err)
		}
		trees = append(trees, t)
	}
	return trees, nil
}

func openTree(m PlanMount) (detachedMount, error) {
	if m.Below != "" {
		return openBelow(m)
	}
	var stat unix.Stat_t
	if err := unix.Lstat(m.Source, &stat); err != nil {
		return detachedMount{}, err
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && m.Same != nil {
		err = m.Same.checkSame(fd)
	}
	return detachedMount{PlanMount: m, fd: fd, isDir: stat.Mode&unix.S_IFMT == unix.S_IFDIR}, err
}

// openBelow opens the file or folder that m describes, which is below the folder m.Below. It follows no symbolic
// links, because programs may change that folder's content at the same time.
func openBelow(m PlanMount) (detachedMount, error) {
	above, err := unix.Open(m.Below, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return detachedMount{}, err
	}
	defer unix.Close(above)
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	held, err := unix.Openat2(above, m.Source, &how)
	if err != nil {
		return detachedMount{}, err
	}
	defer unix.Close(held)
	var stat unix.Stat_t
	if err := unix.Fstat(held, &stat); err != nil {
		return detachedMount{}, err
	}
	kind := stat.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return detachedMount{}, unix.EINVAL
	}
	fd, err := unix.OpenTree(held, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	return detachedMount{PlanMount: m, fd: fd, isDir: kind == unix.S_IFDIR}, err
}

// checkSame returns ErrOther if the file open at fd has another identity. It checks the descriptor instead of the
// path, because the path may lead to another file by now.
func (i *FileIdentity) checkSame(fd int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if *i != identityOf(&stat) {
		return ErrOther
	}
	return nil
}

func identityOf(stat *unix.Stat_t) FileIdentity {
	return FileIdentity{Device: uint64(stat.Dev), Inode: stat.Ino, Size: stat.Size, Changed: stat.Ctim.Nano()}
}

// IdentifyFile returns the identity of an open file and its mode as stat reports it.
func IdentifyFile(f *os.File) (FileIdentity, uint32, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return FileIdentity{}, 0, err
	}
	return identityOf(&stat), stat.Mode, nil
}

// mountBase mounts the new root on a directory that exists on every machine.
func mountBase() (base string, err error) {
	for _, base = range []string{"/tmp", "/run", "/mnt", "/dev"} {
		err = unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=4m,nr_inodes=4096,mode=755")
		if err == nil || err == unix.EPERM {
			return base, err
		}
	}
	return base, err
}

// rootBuilder builds the new root. It keeps the first error.
type rootBuilder struct {
	base string
	err  error
}

func (b *rootBuilder) runStep(step string, f func() error) {
	if b.err == nil {
		b.err = setupError(step, f())
	}
}

// makeMountPoint creates a mount point: a directory or an empty file.
func (b *rootBuilder) makeMountPoint(target string, isDir bool) (string, error) {
	if target != path.Clean(target) || !strings.HasPrefix(target, "/") {
		return "", fmt.Errorf("%q is not a clean path", target)
	}
	where := b.base + target
	if isDir {
		return where, os.MkdirAll(where, 0o755)
	}
	if err := os.MkdirAll(path.Dir(where), 0o755); err != nil {
		return "", err
	}
	f, err := os.OpenFile(where, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return "", err
	}
	return where, f.Close()
}

func (b *rootBuilder) attachMount(t detachedMount) {
	b.runStep("mount "+t.Target, func() error {
		if t.fd < 0 {
			return unix.Mount(
				"tmpfs", b.base+t.Target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY,
				"size=4k,nr_inodes=2,mode=755",
			)
		}
		defer unix.Close(t.fd)
		where, err := b.makeMountPoint(t.Target, t.isDir)
		if err != nil {
			return err
		}
		attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV}
		switch {
		case t.Device:
			attributes.Attr_set = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
		case t.Writable:
			attributes.Attr_set = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NODEV
		}
		if t.Below != "" {
			attributes.Attr_set |= unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOSYMFOLLOW
		}
		if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH, &attributes); err != nil {
			return err
		}
		return unix.MoveMount(t.fd, "", unix.AT_FDCWD, where, unix.MOVE_MOUNT_F_EMPTY_PATH)
	})
}

// writeFiles writes the files of the harness, the code that makes an interpreter a guest, into the new root. The
// whole root is made read-only at the end.
func (b *rootBuilder) writeFiles(dir string, files map[string][]byte) {
	if dir == "" {
		return
	}
	for name, data := range files {
		b.runStep("write "+name, func() error {
			where, err := b.makeMountPoint(path.Join("/", dir, name), false)
			if err != nil {
				return err
			}
			return os.WriteFile(where, data, 0o644)
		})
	}
}

func (b *rootBuilder) mountTemporary(size int64) {
	if size <= 0 {
		return
	}
	b.runStep("mount /tmp", func() error {
		if err := os.Mkdir(b.base+"/tmp", 0o755); err != nil {
			return err
		}
		inodes := max(size/(16<<10), 64)
		return unix.Mount("tmpfs", b.base+"/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
			fmt.Sprintf("size=%d,nr_inodes=%d,mode=1777", size, inodes))
	})
}

// mountProc mounts a /proc that shows only the processes inside the sandbox. The kernel refuses this if the host's
// own /proc is partly hidden, as in containers; the sandbox then has no /proc.
func (b *rootBuilder) mountProc(wanted bool) {
	if !wanted {
		return
	}
	b.runStep("mount /proc", func() error {
		if err := os.Mkdir(b.base+"/proc", 0o555); err != nil {
			return err
		}
		err := unix.Mount(
			"proc", b.base+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY,
			"subset=pid,hidepid=invisible",
		)
		if err == unix.EPERM || err == unix.EINVAL {
			return nil
		}
		return err
	})
}

// enterRoot makes base the root directory and unmounts the old root.
func enterRoot(base string) error {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"enter /", func() error { return unix.Chdir(base) }},
		{"pivot_root", func() error { return unix.PivotRoot(".", ".") }},
		{"let go of the machine's /", func() error { return unix.Unmount(".", unix.MNT_DETACH) }},
		{"make / read-only", func() error {
			return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
		}},
		{"enter /", func() error { return unix.Chdir("/") }},
		{"host name", func() error { return unix.Sethostname([]byte("retort")) }},
	} {
		if err := setupError(step.name, step.do()); err != nil {
			return err
		}
	}
	return nil
}
