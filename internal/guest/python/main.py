"""The first file of the guest: takes the wire away from everybody else, says
that it is ready, and loads the rest while the program is on its way."""

import posix
import sys

HERE = __file__.rpartition("/")[0]


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


def say_ready(wire_out):
    version = "%d.%d.%d" % sys.version_info[:3]
    head = ('{"protocol":1,"runtime":"python","version":"%s"}' % version).encode()
    frame = (9 + len(head)).to_bytes(4, "big") + b"\x01\0\0\0\0" + len(head).to_bytes(4, "big") + head
    posix.write(wire_out, frame)


def loader():
    """Gives the function that loads the other files, each once. They are no
    modules that a program could import."""
    import _frozen_importlib_external as importing

    parts = {}
    own = dict(vars(sys.modules["builtins"]))  # which no program changes

    def need(name):
        part = parts.get(name)
        if part is None:
            path = "%s/%s.py" % (HERE, name)
            part = parts[name] = type(sys)(name)
            part.__dict__.update(need=need, __file__=path, __builtins__=own)
            exec(importing.SourceFileLoader(name, path).get_code(name), part.__dict__)
        return part

    return need


def main():
    wire_in, wire_out = take_wire()
    say_ready(wire_out)
    need = loader()
    try:
        need("serve").serve(need("channel").Channel(wire_in, wire_out))
    except BaseException as error:  # a fault of the guest's own
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        place = "%s:%d" % (trace.tb_frame.f_code.co_filename.rpartition("/")[2], trace.tb_lineno)
        posix.write(2, ("guest: %s: %s: %.2000s\n" % (place, type(error).__name__, error)).encode("utf-8", "replace"))
        posix._exit(70)


main()
