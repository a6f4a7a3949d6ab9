"""What the gate is told of a program: its syntax tree, pickled, and what only the
interpreter knows. The program is parsed here and judged there."""

import _ast
import builtins
import gc
import sys

try:
    from _pickle import Pickler
except ImportError:  # an interpreter without its parts in C
    from pickle import Pickler

channel_part, rewriting = need("channel"), need("rewrite")
PARSED, COMPILED = channel_part.PARSED, channel_part.COMPILED

MOST = 5000  # modules
LARGEST = 31 << 20  # bytes of a pickled tree
DEEPEST = 12_000  # calls of the pickler in each other; the compiler gives up far earlier
OWN = {
    "ToolError", "call_mcp_tool", "callMCPTool", "search_tools", "searchTools", "pages", "approve", "sleep", "state", "pii", "skills", "load_skill", "exec_command",
    "read_file", "write_file", "list_files", "servers", "exit", "quit",
    "__name__", "__file__", "__builtins__", "__doc__", "__spec__", "__loader__", "__package__", "__debug__", "__annotations__", "__dict__", "__class__",
    "__module__", "__qualname__", "__path__", "__cached__",
}  # fmt: skip
# The fields that hold statements, by the classes that have them.
BLOCKS = {
    getattr(_ast, name): fields
    for names, fields in {
        "FunctionDef AsyncFunctionDef ClassDef With AsyncWith ExceptHandler match_case": ("body",),
        "If For AsyncFor While": ("body", "orelse"),
        "Try TryStar": ("body", "handlers", "orelse", "finalbody"),
        "Match": ("cases",),
    }.items()
    for name in names.split()
    if hasattr(_ast, name)
}


def answers(source):
    """Yields what is known of a program with its pickled tree, then whether it can
    be compiled, which is found out while the gate judges. Nothing of what is made
    on the way is garbage before the end, so nobody looks for any."""
    gc.disable()
    try:
        parsed, failed = attempt(parse, source)
        tree, known, pickled = parsed or (None, failed, b"")
        yield PARSED, known, pickled
        yield COMPILED, attempt(finish, tree)[1] if parsed else failed, b""
    finally:
        gc.enable()


def attempt(step, subject):
    """What a step gives, and what is to be told if the program does not allow it."""
    try:
        return step(subject), {}
    except SyntaxError as error:
        name, message, line, column = type(error).__name__, str(error.msg), error.lineno or 1, max(error.offset or 1, 1)
    except (RecursionError, MemoryError):
        name, message, line, column = "deep", "the program is nested too deeply", 1, 1
    except ValueError as error:
        name, message, line, column = "SyntaxError", str(error), 1, 1
    return None, {"error": {"name": name, "message": message, "line": line, "column": column}}


def parse(source):
    """The tree of a program, what is known of it, and the pickled tree."""
    tree = rewriting.parse(source, "program.py")
    pickled = pickle(tree)
    found = known(tree, source)
    found["large"] = pickled is None
    return tree, found, pickled or b""


def finish(tree):
    rewriting.top_returns(tree.body)
    rewriting.finish(tree, "program.py")


class Sink:
    """Takes what a pickler writes."""

    def __init__(self):
        self.parts, self.size = [], 0

    def write(self, data):
        self.size += len(data)
        if self.size > LARGEST:
            raise OverflowError
        self.parts.append(bytes(data))


def pickle(tree):
    """A tree as pickle writes it, which the gate reads by itself; None if that
    is too much."""
    borrowed = "ast" not in sys.modules
    if borrowed:  # where the pickler looks for the classes, and which takes long to load
        sys.modules["ast"] = _ast
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(max(usual, DEEPEST))
    try:
        return written(Pickler, tree)
    except RecursionError:
        from pickle import _Pickler  # slow, and without a limit in C

        return written(_Pickler, tree)
    except OverflowError:
        return None
    finally:
        sys.setrecursionlimit(usual)
        if borrowed:
            del sys.modules["ast"]


def written(pickler, tree):
    sink = Sink()
    pickler(sink, 4).dump(tree)
    return b"".join(sink.parts)


def known(tree, source):
    """What only the interpreter knows of a program."""
    modules = imported(tree.body) if "import" in source else ()
    found = {
        "version": "%d.%d" % sys.version_info[:2],
        "builtins": " ".join({*dir(builtins), *dir(type(builtins))} - OWN),
        "own": " ".join(OWN | rewriting.MODULES | rewriting.NAMES.keys()),
        "unknown": [],
        "lacks": [],
    }
    for module, name in list(modules)[:MOST]:
        look(module, name, found)
    return found


def imported(body):
    """The modules that statements import, and the names from them, each once."""
    found, blocks, inside = {}, [body], BLOCKS.get
    while blocks:
        for statement in blocks.pop():
            kind = statement.__class__
            fields = inside(kind)
            if fields is not None:
                blocks += [getattr(statement, field) for field in fields]
            elif kind is _ast.Import:
                found.update(((alias.name, ""), None) for alias in statement.names)
            elif kind is _ast.ImportFrom:
                module = "." * statement.level + (statement.module or "")
                found.update(((module, alias.name), None) for alias in statement.names)
    return found


def look(module, name, found):
    """Takes note of a module that does not exist, and of a member that a module
    lacks where that is plain to see."""
    head = module.partition(".")[0]
    if head in ("servers", "client", "skills", "__future__", ""):
        return
    if not has_module(head):
        if head not in found["unknown"]:
            found["unknown"].append(head)
        return
    loaded = usual(module) if name else None
    if loaded is not None and name and name != "*" and not hasattr(loaded, name) and not is_submodule(loaded, module, name):
        from difflib import get_close_matches

        near = get_close_matches(name, [n for n in dir(loaded) if not n.startswith("_")], 2, 0.7)
        found["lacks"].append({"module": module, "name": name, "near": near})


def is_submodule(package, module, name):
    if not hasattr(package, "__path__"):
        return False
    from importlib.util import find_spec

    try:
        return find_spec("%s.%s" % (module, name)) is not None
    except (ImportError, ValueError):
        return False


def usual(module):
    """A module of the library that is loaded, or is soon since most programs use
    it. No other is loaded for a program that may be refused."""
    if module not in sys.modules and module in need("serve").USUAL:
        try:
            __import__(module)
        except ImportError:
            return None
    return sys.modules.get(module)


def has_module(name):
    names = getattr(sys, "stdlib_module_names", None)
    if name in sys.builtin_module_names or name in sys.modules:
        return True
    if names is not None and name not in names:
        return False
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
