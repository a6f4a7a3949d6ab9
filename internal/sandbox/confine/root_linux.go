package confine

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// buildRoot replaces the root of this process with a file system that has only what the plan names, and detaches the
// machine's.
func (p *Plan) buildRoot(harness map[string][]byte) error {
	// Mounts made here must not propagate to the machine, nor the other way.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return failed("make mounts private", err)
	}
	trees, err := p.openTrees()
	if err != nil {
		return err
	}
	base, err := mountBase()
	if err != nil {
		return failed("mount /", err)
	}
	b := &builder{base: base}
	for _, t := range trees {
		b.attach(t)
	}
	b.files(p.Harness, harness)
	b.temporary(p.Tmp)
	b.proc(p.Proc)
	if b.err != nil {
		return b.err
	}
	return enterRoot(base)
}

// tree is a detached part of the machine's file system, held by a descriptor.
type tree struct {
	Mount
	fd    int
	isDir bool
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}

// openTrees opens what will be mounted later, while its paths are still valid.
func (p *Plan) openTrees() ([]tree, error) {
	var trees []tree
	for _, m := range p.Mounts {
		if m.Empty {
			trees = append(trees, tree{Mount: m, fd: -1, isDir: true})
			continue
		}
		t, err := openTree(m)
		if err != nil {
			return nil, failed("open "+m.Source, err)
		}
		trees = append(trees, t)
	}
	if len(p.Argv) == 0 {
		return trees, nil
	}
	for _, d := range devices {
		t, err := openTree(Mount{Source: d, Target: d, Device: true})
		if err != nil {
			return nil, failed("open "+d, err)
		}
		trees = append(trees, t)
	}
	return trees, nil
}

func openTree(m Mount) (tree, error) {
	if m.Below != "" {
		return openBelow(m)
	}
	var stat unix.Stat_t
	if err := unix.Lstat(m.Source, &stat); err != nil {
		return tree{}, err
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && m.Same != nil {
		err = m.Same.is(fd)
	}
	return tree{Mount: m, fd: fd, isDir: stat.Mode&unix.S_IFMT == unix.S_IFDIR}, err
}

// openBelow opens a file or folder below another without following symbolic links, because programs may change what
// is there at the same time.
func openBelow(m Mount) (tree, error) {
	above, err := unix.Open(m.Below, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(above)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV}
	held, err := unix.Openat2(above, m.Source, &how)
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(held)
	var stat unix.Stat_t
	if err := unix.Fstat(held, &stat); err != nil {
		return tree{}, err
	}
	kind := stat.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return tree{}, unix.EINVAL
	}
	fd, err := unix.OpenTree(held, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	return tree{Mount: m, fd: fd, isDir: kind == unix.S_IFDIR}, err
}

// is returns an error unless fd is the file with this identity. What the path means by now does not matter.
func (i *Identity) is(fd int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if *i != identityOf(&stat) {
		return ErrOther
	}
	return nil
}

func identityOf(stat *unix.Stat_t) Identity {
	return Identity{Device: uint64(stat.Dev), Inode: stat.Ino, Size: stat.Size, Changed: stat.Ctim.Nano()}
}

// Identify returns the identity of an open file and its mode as stat reports it.
func Identify(f *os.File) (Identity, uint32, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return Identity{}, 0, err
	}
	return identityOf(&stat), stat.Mode, nil
}

// mountBase mounts the new root on a directory that every machine has.
func mountBase() (base string, err error) {
	for _, base = range []string{"/tmp", "/run", "/mnt", "/dev"} {
		err = unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=4m,nr_inodes=4096,mode=755")
		if err == nil || err == unix.EPERM {
			return base, err
		}
	}
	return base, err
}

// builder builds the new root. It keeps the first error.
type builder struct {
	base string
	err  error
}

func (b *builder) do(step string, f func() error) {
	if b.err == nil {
		b.err = failed(step, f())
	}
}

// place creates a mount point: a directory or an empty file.
func (b *builder) place(target string, isDir bool) (string, error) {
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

func (b *builder) attach(t tree) {
	b.do("mount "+t.Target, func() error {
		if t.fd < 0 {
			return unix.Mount("tmpfs", b.base+t.Target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "size=4k,nr_inodes=2,mode=755")
		}
		defer unix.Close(t.fd)
		where, err := b.place(t.Target, t.isDir)
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

// files writes the files of the harness. The whole root is made read-only at the end.
func (b *builder) files(dir string, files map[string][]byte) {
	if dir == "" {
		return
	}
	for name, data := range files {
		b.do("write "+name, func() error {
			where, err := b.place(path.Join("/", dir, name), false)
			if err != nil {
				return err
			}
			return os.WriteFile(where, data, 0o644)
		})
	}
}

func (b *builder) temporary(size int64) {
	if size <= 0 {
		return
	}
	b.do("mount /tmp", func() error {
		if err := os.Mkdir(b.base+"/tmp", 0o755); err != nil {
			return err
		}
		inodes := max(size/(16<<10), 64)
		return unix.Mount("tmpfs", b.base+"/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
			fmt.Sprintf("size=%d,nr_inodes=%d,mode=1777", size, inodes))
	})
}

// proc mounts a /proc that shows only the processes inside the sandbox. A machine that hides parts of its own /proc,
// as containers do, does not allow that; then there is none.
func (b *builder) proc(wanted bool) {
	if !wanted {
		return
	}
	b.do("mount /proc", func() error {
		if err := os.Mkdir(b.base+"/proc", 0o555); err != nil {
			return err
		}
		err := unix.Mount("proc", b.base+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "subset=pid,hidepid=invisible")
		if err == unix.EPERM || err == unix.EINVAL {
			return nil
		}
		return err
	})
}

// enterRoot makes base the root and the old root unreachable.
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
		if err := failed(step.name, step.do()); err != nil {
			return err
		}
	}
	return nil
}
