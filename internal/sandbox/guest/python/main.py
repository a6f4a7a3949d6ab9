"""The first file of the guest: takes the wire away from everybody else, says
that it is ready, and loads the rest while the program is on its way.

With the argument "compile" it writes the other files, compiled, to its output
and ends; with "compiled" it gets them in the first frame."""

import marshal
import posix
import sys

HARNESS = 10  # the kind of a frame
RING, RING_SIZE = 100, 256 << 10  # a descriptor, and what it is of
HERE = __file__.rpartition("/")[0]
ARGUMENTS = sys.argv[1:]


def take_wire():
    """Moves the wire to other descriptors. What writes to descriptor 1 by itself
    then reaches nobody."""
    wire_in, wire_out = posix.dup(0), posix.dup(1)
    try:
        null_in = null_out = posix.open("/dev/null", posix.O_RDWR)
    except OSError:  # a root without devices
        null_in, null_out = posix.pipe()
    posix.dup2(null_in, 0)
    posix.dup2(null_out, 1)
    for fd in {null_in, null_out} - {0, 1}:
        posix.close(fd)
    return wire_in, wire_out


def find_ring():
    """The memory that the host sees, from where its descriptor stands; None if there is
    none. No descriptor stays open: the module keeps one of its own."""
    try:
        at = posix.lseek(RING, 0, 1)
        from mmap import mmap

        spare = posix.dup(RING)
        posix.close(spare)
        memory = mmap(RING, RING_SIZE, offset=at)
    except (OSError, ValueError, ImportError):
        return None
    posix.close(RING)
    try:
        posix.close(spare)
    except OSError:
        pass
    return memory if memory[:8] == b"etotring" else None


def say_ready(wire_out, ring):
    version = "%d.%d.%d" % sys.version_info[:3]
    head = ('{"protocol":1,"runtime":"python","version":"%s"}' % version).encode()
    frame = (9 + len(head)).to_bytes(4, "big") + b"\x01\0\0\0\0" + len(head).to_bytes(4, "big") + head
    if ring is not None:  # it is the first part of what that takes
        frame = (1 << 31 | len(frame)).to_bytes(4, "big") + b"\0\0\0\0" + frame
    posix.write(wire_out, frame)


def write_compiled():
    codes = {}
    for file in posix.listdir(HERE):
        name, dot, kind = file.rpartition(".")
        if kind == "py" and name != "main":
            codes[name] = marshal.dumps(from_source(name))
    rest = marshal.dumps((sys.hexversion, codes))
    while rest:
        rest = rest[posix.write(1, rest) :]


def read_compiled(wire_in):
    """The compiled files by name; none if they are another interpreter's."""
    size = int.from_bytes(read(wire_in, 4), "big")
    frame = read(wire_in, size)
    if frame[0] != HARNESS:
        posix._exit(2)
    version, codes = marshal.loads(frame[9 + int.from_bytes(frame[5:9], "big") :])
    return codes if version == sys.hexversion else {}


def read(wire_in, count):
    parts = []
    while count > 0:
        part = posix.read(wire_in, count)
        if not part:
            posix._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def from_source(name):
    from _frozen_importlib_external import SourceFileLoader

    return SourceFileLoader(name, "%s/%s.py" % (HERE, name)).get_code(name)


def loader(codes):
    """Gives the function that loads the other files, each once. They are no
    modules that a program could import."""
    parts = {}
    own = dict(vars(sys.modules["builtins"]))  # which no program changes

    def need(name):
        part = parts.get(name)
        if part is None:
            part = parts[name] = type(sys)(name)
            part.__dict__.update(need=need, __file__="%s/%s.py" % (HERE, name), __builtins__=own)
            exec(marshal.loads(codes[name]) if name in codes else from_source(name), part.__dict__)
        return part

    return need


def main():
    wire_in, wire_out = take_wire()
    ring = find_ring()
    say_ready(wire_out, ring)
    need = loader(read_compiled(wire_in) if ARGUMENTS == ["compiled"] else {})
    try:
        need("serve").serve(need("channel").Channel(wire_in, wire_out, ring))
    except BaseException as error:  # a fault of the guest's own
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        place = "%s:%d" % (trace.tb_frame.f_code.co_filename.rpartition("/")[2], trace.tb_lineno)
        posix.write(2, ("guest: %s: %s: %.2000s\n" % (place, type(error).__name__, error)).encode("utf-8", "replace"))
        posix._exit(70)


if ARGUMENTS == ["compile"]:
    write_compiled()
else:
    main()
