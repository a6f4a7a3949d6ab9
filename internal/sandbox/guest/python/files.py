"""The visible tree of files, by calls to the host, in the place of the real one.
What programs and the standard library reach through open, os and what is built
on them is the host's tree; /tmp and the interpreter's own library are real.
"""

import builtins
import errno
import io
import os
import posixpath
import stat as stat_part
import sys
from _weakref import ref
from binascii import a2b_base64, b2a_base64

calls = need("calls")
PART = 3 << 20  # bytes of one call
real_open = io.open
real = {}  # functions of os that are replaced
CODES = {"EROFS": PermissionError, "EDQUOT": OSError}


class Tree:
    """The host's files, and the folder that the program is in."""

    def __init__(self):
        self.caller = None
        self.folder = "/"
        self.opened = []  # references to what is written and may not be closed

    def ask(self, function, path, other=None, /, **arguments):
        """One call to the host. Its failures become those of an operating system."""
        if self.caller is None:  # there is no program yet
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        try:
            return self.caller.own(function, **arguments)
        except calls.ToolError as error:
            failure = as_os_error(error, path, other)
        raise failure from None

    def remember(self, file):
        if len(self.opened) > 1000:
            self.opened = [known for known in self.opened if known() is not None]
        self.opened.append(ref(file))

    def stat(self, path):
        return self.ask("stat_file", path, path=full(path))

    def list(self, path):
        return self.ask("list_files", path, path=full(path)).get("entries") or []


tree = Tree()


def as_os_error(error, path, other=None):
    code, colon, _ = str(error).partition(": ")
    number = getattr(errno, code, None) if colon else None
    if number is None:
        return error
    text = os.strerror(number)
    if code in ("EROFS", "EACCES", "EDQUOT", "EPERM", "ENAMETOOLONG"):
        text = str(error).split(": ", 2)[-1] + ("; " + error.hint if error.hint else "")
    kind = CODES.get(code, OSError)
    return kind(number, text, path) if other is None else kind(number, text, path, None, other)


def text_of(path):
    path = os.fspath(path)
    return os.fsdecode(path) if isinstance(path, bytes) else path


def full(path):
    """The absolute path in the visible tree."""
    text = text_of(path)
    if "\0" in text:
        raise ValueError("embedded null byte")
    if text == "":
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return posixpath.normpath(posixpath.join(tree.folder, anchored(text)))


VISIBLE = ("", ".", "..", "servers", "skills", "workspace")


def anchored(text):
    """A relative path; in the workspace if it begins with no folder of the tree.
    The host has the same rule for the other runtimes (workspace.Tree)."""
    if tree.folder != "/" or text.startswith("/"):
        return text
    written = next((part for part in text.split("/") if part not in ("", ".")), "")
    first = posixpath.normpath(text).partition("/")[0]
    return text if written in VISIBLE or first in VISIBLE else "/workspace/" + text


def absolute(name):
    """A function of os.path that makes a path absolute, for the tree."""
    actual = getattr(posixpath, name)

    def function(path, *args, **kwargs):
        path = os.fspath(path)
        if isinstance(path, bytes):
            return actual(os.fsencode(anchored(os.fsdecode(path))), *args, **kwargs)
        return actual(anchored(path), *args, **kwargs)

    return Function(function, name)


LIBRARY = tuple(
    {posixpath.dirname(os.__file__) + "/", sys.prefix + "/lib/", sys.base_prefix + "/lib/", "/usr/share/zoneinfo/", "/dev/null", "/dev/urandom", "/dev/zero"}
)


def is_real(path, writes=False):
    """Whether a path leads to the real files: a descriptor, /tmp, or what the
    interpreter reads for itself."""
    if isinstance(path, int):
        return True
    try:
        where = full(path)
    except (TypeError, ValueError, FileNotFoundError):
        return isinstance(path, int)
    if where == "/tmp" or where.startswith("/tmp/"):
        return True
    return where.startswith(LIBRARY) and not writes


class Raw(io.RawIOBase):
    """One open file of the tree."""

    changed = False  # also where it could not be opened

    def __init__(self, path, mode):
        super().__init__()
        self.path, self.name, self.mode = full(path), path, mode
        self.reads, self.writes, self.appends = "r" in mode or "+" in mode, mode[0] != "r" or "+" in mode, mode[0] == "a"
        self.at = 0
        self.part, self.part_at = b"", 0  # what was read last, and where it begins
        self.whole = None  # all of a file that is written out of order
        self.size = self.begin(mode[0], path)
        if self.appends:
            self.at = self.size

    def begin(self, mode, path):
        if mode == "w":
            self.send(b"", append=False)
            return 0
        try:
            found = tree.stat(self.path)
        except FileNotFoundError:
            if mode == "r":
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
            self.send(b"", append=False)
            return 0
        if mode == "x":
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if found.get("dir"):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return found.get("bytes") or 0

    def send(self, data, append):
        tree.ask("write_file", self.name, path=self.path, data=b2a_base64(data, newline=False).decode(), **({"append": True} if append else {}))

    def readable(self):
        return self.reads

    def writable(self):
        return self.writes

    def seekable(self):
        return True

    def readinto(self, buffer):
        if not self.reads:
            raise io.UnsupportedOperation("not readable")
        view = memoryview(buffer).cast("B")
        data = self.whole[self.at : self.at + len(view)] if self.whole is not None else self.fetch(len(view))
        view[: len(data)] = data
        self.at += len(data)
        return len(data)

    def fetch(self, size):
        """Some bytes from the present place on; none at the end."""
        start = self.at - self.part_at
        if not 0 <= start < len(self.part):
            answer = tree.ask("read_file", self.name, path=self.path, offset=self.at, length=max(size, PART))
            self.part, self.part_at, start = a2b_base64(answer.get("data") or ""), self.at, 0
        return self.part[start : start + size]

    def write(self, data):
        if not self.writes:
            raise io.UnsupportedOperation("not writable")
        view = memoryview(data).cast("B")
        if self.appends:
            self.at = self.size
        if self.whole is None and self.at == self.size:
            for i in range(0, len(view), PART):
                self.send(view[i : i + PART], append=True)
        else:
            self.keep_whole()
            if self.at > len(self.whole):
                self.whole.extend(bytes(self.at - len(self.whole)))
            self.whole[self.at : self.at + len(view)] = view
            self.changed = True
        self.at += len(view)
        self.size = max(self.size, self.at)
        self.part = b""
        return len(view)

    def keep_whole(self):
        """Takes the whole file into memory, to be written when it is flushed."""
        if self.whole is None:
            before, self.at, self.part = self.at, 0, b""
            whole = bytearray()
            while self.at < self.size:
                data = self.fetch(PART)
                if not data:
                    break
                whole += data
                self.at += len(data)
            self.at, self.whole = before, whole

    def flush(self):
        super().flush()
        if self.changed:
            self.changed = False
            for i in range(0, len(self.whole) or 1, PART):
                self.send(memoryview(self.whole)[i : i + PART], append=i > 0)

    def seek(self, offset, whence=0):
        self.at = max(0, offset + (0, self.at, self.size)[whence])
        return self.at

    def tell(self):
        return self.at

    def truncate(self, size=None):
        size = self.at if size is None else size
        self.keep_whole()
        self.whole = self.whole[:size] + bytes(max(0, size - len(self.whole)))
        self.size, self.changed = size, True
        return size

    def fileno(self):
        raise io.UnsupportedOperation("files of the workspace have no descriptor")


def virtual_open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    """open, as it is documented."""
    if not isinstance(mode, str):
        raise TypeError("open() argument 'mode' must be str, not %s" % type(mode).__name__)
    modes = set(mode)
    writes = bool(modes & set("wax+"))
    if is_real(file, writes):
        return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    if modes - set("axrwb+t") or len(mode) > len(modes) or len(modes & set("wrax")) != 1 or {"b", "t"} <= modes:
        raise ValueError("invalid mode: %r" % mode)
    binary = "b" in modes
    if binary and (encoding is not None or errors is not None or newline is not None):
        raise ValueError("binary mode doesn't take an encoding, errors or newline argument")
    raw = Raw(file, (modes & set("wrax")).pop() + ("+" if "+" in modes else ""))
    if buffering == 0:
        if not binary:
            raise ValueError("can't have unbuffered text I/O")
        return raw
    kind = io.BufferedRandom if "+" in modes else io.BufferedReader if "r" in modes else io.BufferedWriter
    buffered = kind(raw, buffering if buffering > 1 else 1 << 18 if kind is io.BufferedReader else 1 << 20)
    if writes:
        tree.remember(buffered)
    if binary:
        return buffered
    text = io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline, buffering == 1)
    text.mode = mode
    if writes:
        tree.remember(text)
    return text


def close_all():
    """Writes what programs have written and not closed."""
    for known in reversed(tree.opened):  # text before what carries its bytes
        file = known()
        if file is not None and not file.closed:
            file.flush()


def stat_result(found):
    kind = stat_part.S_IFDIR | 0o755 if found.get("dir") else stat_part.S_IFREG | 0o644
    when = modified(found.get("modified"))
    return os.stat_result((kind, 0, 0, 1, 0, 0, found.get("bytes") or 0, int(when), int(when), int(when), when, when, when, int(when * 1e9), int(when * 1e9), int(when * 1e9)))


def modified(text):
    if not text or text.startswith("0001-"):
        return 0.0
    import datetime

    try:
        return datetime.datetime.strptime(text[:19] + "+0000", "%Y-%m-%dT%H:%M:%S%z").timestamp()
    except ValueError:
        return 0.0


class Entry:
    """One entry of os.scandir."""

    __slots__ = ("name", "path", "found")

    def __init__(self, folder, found):
        self.name, self.found = found["name"], found
        self.path = posixpath.join(folder, self.name)

    def is_dir(self, *, follow_symlinks=True):
        return bool(self.found.get("dir"))

    def is_file(self, *, follow_symlinks=True):
        return not self.found.get("dir")

    def is_symlink(self):
        return False

    def is_junction(self):
        return False

    def inode(self):
        return 0

    def stat(self, *, follow_symlinks=True):
        return stat_result(self.found)

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return "<DirEntry %r>" % self.name


class Scan:
    """What os.scandir gives."""

    def __init__(self, entries):
        self.entries = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.entries)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def close(self):
        pass


def v_stat(path, *, dir_fd=None, follow_symlinks=True):
    return stat_result(tree.stat(path))


def v_listdir(path="."):
    return [entry["name"] for entry in tree.list(path)]


def v_scandir(path="."):
    shown = text_of(path)
    return Scan([Entry(shown, entry) for entry in tree.list(path)])


def v_mkdir(path, mode=0o777, *, dir_fd=None):
    try:
        tree.stat(path)
    except FileNotFoundError:
        tree.ask("make_dir", path, path=full(path))
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)


def v_remove(path, *, dir_fd=None):
    if tree.stat(path).get("dir"):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    tree.ask("remove_file", path, path=full(path))


def v_rmdir(path, *, dir_fd=None):
    if not tree.stat(path).get("dir"):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    if tree.list(path):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
    tree.ask("remove_file", path, path=full(path))


def v_rename(src, dst, *, src_dir_fd=None, dst_dir_fd=None):
    tree.ask("rename_file", src, dst, **{"from": full(src), "to": full(dst)})


def v_access(path, mode, **_):
    try:
        tree.stat(path)
    except OSError:
        return False
    where = full(path)
    return not mode & os.X_OK and (not mode & os.W_OK or where == "/workspace" or where.startswith("/workspace/"))


def v_chdir(path):
    if not tree.stat(path).get("dir"):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    tree.folder = full(path)


def v_nothing(path, *_, **__):
    """Times and modes cannot be set; whoever tries does no harm."""
    tree.stat(path)


def v_truncate(path, length):
    with virtual_open(path, "r+b") as f:
        f.truncate(length)


def v_denied(path, *_, **__):
    raise PermissionError(errno.EPERM, "files of the workspace have no descriptors and no links: use open()", path)


def v_readlink(path, *, dir_fd=None):
    tree.stat(path)
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)


VIRTUAL = {
    "stat": v_stat,
    "lstat": v_stat,
    "listdir": v_listdir,
    "scandir": v_scandir,
    "mkdir": v_mkdir,
    "remove": v_remove,
    "unlink": v_remove,
    "rmdir": v_rmdir,
    "rename": v_rename,
    "replace": v_rename,
    "access": v_access,
    "utime": v_nothing,
    "chmod": v_nothing,
    "truncate": v_truncate,
    "open": v_denied,
    "readlink": v_readlink,
    "link": v_denied,
    "symlink": v_denied,
    "statvfs": v_denied,
    "listxattr": lambda path=".", **_: [],
}


class Function:
    """A function that is no method where a class has it, as built-in ones are."""

    def __init__(self, function, name):
        self.function, self.__name__, self.__qualname__ = function, name, name

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def divided(name, virtual):
    """A function of os that serves both the tree and the real files."""
    actual = real[name] = getattr(os, name)

    def function(path=".", *args, **kwargs):
        if is_real(path, name in WRITES) or kwargs.get("dir_fd") is not None:
            return actual(path, *args, **kwargs)
        return virtual(path, *args, **kwargs)

    return Function(function, name)


WRITES = {"mkdir", "remove", "unlink", "rmdir", "rename", "replace", "utime", "chmod", "truncate", "link", "symlink"}


def install():
    """Puts the tree in the place of the real files."""
    builtins.open = io.open = Function(virtual_open, "open")
    for name, virtual in VIRTUAL.items():
        if hasattr(os, name):
            setattr(os, name, divided(name, virtual))
    os.getcwd = Function(lambda: tree.folder, "getcwd")
    os.getcwdb = Function(lambda: os.fsencode(tree.folder), "getcwdb")
    os.chdir = Function(v_chdir, "chdir")
    for name in ("abspath", "realpath"):
        setattr(posixpath, name, absolute(name))


def use(caller):
    """Has a program's calls answer for the tree."""
    tree.caller = caller


# The helpers of programs.


def in_workspace(path):
    """The path of a file that a helper means: that in the workspace, unless it
    names a folder of the tree."""
    text = text_of(path)
    clean = posixpath.normpath(text.lstrip("/")) if text else "."
    head = clean.partition("/")[0]
    if text.startswith("/tmp/") or head in ("workspace", "servers", "skills"):
        return text if text.startswith("/tmp/") else "/" + clean
    return posixpath.normpath("/workspace/" + clean)


def read_file(path, encoding="utf-8"):
    """The text of a file in the workspace; its bytes if encoding is None."""
    with virtual_open(in_workspace(path), "rb") as f:
        data = f.read()
    return data if encoding is None or encoding == "bytes" else data.decode(encoding)


def write_file(path, content, encoding="utf-8", append=False):
    """Writes text, bytes, or any other value as JSON into a file in the workspace."""
    if isinstance(content, str):
        data = content.encode(encoding)
    elif isinstance(content, (bytes, bytearray, memoryview)):
        data = bytes(content)
    else:
        data = calls.render(content) or b"null"
    where = in_workspace(path)
    with virtual_open(where, "ab" if append else "wb") as f:
        f.write(data)
    return {"path": where[len("/workspace/") :] if where.startswith("/workspace/") else where, "bytes": len(data)}


def list_files(path="", glob=None, recursive=True):
    """The paths of the files in a folder of the workspace, as read_file takes them."""
    from fnmatch import fnmatch

    root = in_workspace(path or ".")
    found, folders = [], [root]
    while folders:
        folder = folders.pop()
        for entry in tree.list(folder):
            inner = posixpath.join(folder, entry["name"])
            if not entry.get("dir"):
                found.append(inner[len("/workspace/") :] if inner.startswith("/workspace/") else inner.lstrip("/"))
            elif recursive:
                folders.append(inner)
    pattern = glob and glob.replace("**/", "*")
    return sorted(name for name in found if not pattern or fnmatch(name, pattern) or fnmatch(posixpath.basename(name), pattern))
