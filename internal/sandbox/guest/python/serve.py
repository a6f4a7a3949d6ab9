"""The guest's way: answer what is asked of untouched code, then run one program."""

import gc
import os
import posix
import sys
from _thread import stack_size

channel_part, values = need("channel"), need("values")
render, loads = values.render, values.loads

# What programs use most, loaded while none is there.
USUAL = """asyncio collections datetime re math itertools functools time csv random statistics decimal dataclasses typing
    traceback concurrent.futures threading pathlib io copy string enum uuid hashlib base64 textwrap operator heapq bisect
    logging contextlib glob shutil tempfile urllib.parse html calendar fractions zoneinfo difflib pprint types warnings resource ctypes""".split()
OWN_PARTS = "values network calls scopes flow rewrite globals servers skills files failure program loop facts".split()
RESERVE = 8 << 20  # bytes, to be able to speak of a failure
OVERHEAD = 32 << 20  # bytes beside the heap
SPACE = 8 << 30  # bytes of address space beside that
LIBRARIES = 32 << 20  # bytes of address space for modules that are loaded, where that is what is bounded
BLOCK = 64 << 20  # bytes that an allocator has from the kernel, and gives back to it
ONE_ARENA = b"MALLOC_ARENA_MAX" in posix.environ  # which is emptied
starved = {"status": "memory_limit"}  # the engine has the words, and the memory for them
spare = []  # what keeps memory
reserved = []  # how the limit is raised for the report of a failure
STACK = 2 << 20  # bytes of the stack of a program's thread


def serve(channel):
    channel_part.current = channel
    basics = need("globals")
    basics.install_basics(channel)
    need("files").install()
    from warnings import filterwarnings

    filterwarnings("ignore", category=SyntaxWarning)
    channel.start_thread(channel.watch)
    preload(channel)
    mapped = unheld()
    gc.freeze()  # what is there stays, and is not looked at again and again
    if channel.ring is not None:
        channel.ring.rehearsal = lambda: quietly(rehearse)
    while True:
        kind, number, head, body = channel.read()
        if kind == channel_part.START:
            break
        if kind != channel_part.PARSE:
            os._exit(2)
        for answer, told, tree in need("facts").answers(str(body, "utf-8", "replace")):
            channel.post(answer, number, render(told), tree)
            channel.flush()
    if channel.ring is not None:
        channel.ring.rehearsal = None
    run(channel, loads(str(head, "utf-8")), str(body, "utf-8", "replace"), mapped)


def rehearse():
    part = need("rehearse")
    spare.append(part.take_memory())
    part.rehearse()
    gc.freeze()


def preload(channel):
    """Loads what is likely to be needed, until something arrives."""
    for part in OWN_PARTS:
        if channel.readable():
            return
        need(part)
    for module in USUAL:
        if channel.readable():
            return
        try:
            __import__(module)
        except ImportError:
            pass


def one_arena():
    """Has the C library allocate for all threads in one place. With several it
    tries the others one by one, over and over, when the memory is used up."""
    if ONE_ARENA:
        return
    try:
        from ctypes import CDLL

        CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX
    except (ImportError, OSError, AttributeError):
        pass


def run(channel, start, source, mapped):
    """Runs the program and reports how it ended; then there is nothing more to do."""
    sys.setrecursionlimit(1000)
    one_arena()
    if "random" in sys.modules:  # seeded before this machine was copied, maybe
        sys.modules["random"].seed()
    limit_memory(start.get("memory") or 0, mapped)
    caller = need("calls").Caller(channel)
    need("files").use(caller)
    done, body = outcome(start, source, caller)
    if need("values").warnings:
        done["warnings"] = need("values").warnings
    if caller.under_way > 0:
        done["warnings"] = need("values").warnings + ["calls still running when the program ended: %d; it is unknown whether they took effect" % caller.under_way]
    channel.post(channel_part.DONE, 0, render(done), body)
    channel.flush()
    while True:  # the watching thread ends the process
        channel.fill()
        channel.at = len(channel.buffer)


def outcome(start, source, caller):
    """How the program ended: the head and the body of its report."""
    try:
        return attempt(start, source, caller)
    except BaseException as error:
        more_memory()
        return failed(start, source, error)


def attempt(start, source, caller):
    if "HTTPS_PROXY" in os.environ:
        need("network").install()
    if "async" in source or "await" in source:
        need("loop")
    program = need("program").Program(start, source, caller)
    body = program.run()
    need("files").close_all()
    linger(caller)
    limit = start.get("result") or 0
    if body is not None and 0 < limit < len(body):
        return too_large(len(body), limit), b""
    return {"status": "ok", "has_value": body is not None}, body or b""


def failed(start, source, error):
    if isinstance(error, MemoryError):
        quietly(forget_locals, error)
    quietly(lambda: need("files").close_all())
    try:
        return failure(start, source, error), b""
    except BaseException:  # the program has changed too much, or its threads leave no memory
        return starved if isinstance(error, MemoryError) else {"status": "error", "error": {"kind": "runtime", "message": type(error).__name__}}, b""


def quietly(step, *arguments):
    """Takes a step that the program may have made impossible."""
    try:
        step(*arguments)
    except BaseException:
        pass


def forget_locals(error):
    """Gives back the memory of the frames that a failure has ended."""
    trace = error.__traceback__
    while trace is not None:
        try:
            trace.tb_frame.clear()
        except RuntimeError:
            pass
        trace = trace.tb_next


def failure(start, source, error):
    need_name = need("program").file_name(start.get("name"))
    reporter = need("failure").Reporter(need_name, source, start.get("memory") or 0, start.get("modules") or ())
    if "asyncio" in sys.modules and isinstance(error, need("loop").Deadlock):
        failing = need("failure")
        return {"status": "error", "error": {"kind": "runtime", "message": failing.WAITING, "hint": failing.WAITING_HINT}}
    sys.setrecursionlimit(3000)
    status, told = reporter.report(error)
    return {"status": status, "error": told}


def linger(caller):
    """Lets what is under way come to its end; raises what nobody has looked at."""
    if "asyncio" not in sys.modules:
        return
    loop = need("loop").Loop.main
    if loop is not None:
        loop.linger(caller)
        error = loop.unhandled()
        if error is not None:
            raise error


def too_large(count, limit):
    size = need("failure").size
    message = "the returned value has %s, more than the %s allowed" % (size(count), size(limit))
    hint = "return a summary, or write the data to a file in ./workspace and return its path"
    return {"status": "output_limit", "error": {"kind": "limit", "message": message, "hint": hint}}


def unheld():
    """How many bytes of address space there are, if the kernel holds what is mapped
    against no other limit: gVisor's does so."""
    try:
        import resource

        if refused(resource, resource.RLIMIT_DATA, BLOCK // 2):
            return None
        least, most = 0, SPACE
        while most - least > 1 << 20:
            middle = (least + most) // 2
            if refused(resource, resource.RLIMIT_AS, middle + BLOCK):
                least = middle
            else:
                most = middle
        return most
    except (ImportError, OSError, ValueError):
        return None


def refused(resource, which, limit):
    """Whether a block cannot be had with a limit. It is never written to."""
    before = resource.getrlimit(which)
    resource.setrlimit(which, (limit, before[1]))
    try:
        bytes(BLOCK)
        return False
    except MemoryError:
        return True
    finally:
        resource.setrlimit(which, before)


def limit_memory(heap, mapped):
    """Bounds what the program can allocate: what is there, its heap, and some. The
    address space is bounded loosely, since threads reserve much of it and use
    little, unless nothing else is a bound."""
    if heap <= 0:
        return
    try:
        import resource

        data = data_size(resource) + heap + OVERHEAD
        resource.setrlimit(resource.RLIMIT_DATA, (data, data + RESERVE))
        reserved.append((resource.setrlimit, resource.RLIMIT_DATA, (data + RESERVE, data + RESERVE)))
        space = data + heap + SPACE if mapped is None else mapped + heap + OVERHEAD + LIBRARIES
        resource.setrlimit(resource.RLIMIT_AS, (space, space + RESERVE))
        reserved.append((resource.setrlimit, resource.RLIMIT_AS, (space + RESERVE, space + RESERVE)))
    except (ImportError, OSError, ValueError):
        pass  # the host watches too
    stack_size(STACK)


def more_memory():
    """Takes what is reserved for the report of a failure. It needs no memory."""
    for set_limit, which, limits in reserved:
        set_limit(which, limits)
    reserved.clear()


def data_size(resource):
    """About the bytes of the process's own memory."""
    try:
        with need("files").real_open("/proc/self/statm") as f:
            return int(f.read().split()[5]) * resource.getpagesize()
    except OSError:  # there is no /proc
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
