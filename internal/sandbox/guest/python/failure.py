"""What is told to the outside of a program that failed."""

import builtins

ToolError = need("calls").ToolError
LONG, BRIEF, MOST_FRAMES = 16 << 10, 1 << 10, 10
ENDLESS = 20_000  # frames that only a recursion without an end makes
ENOMEM = 12

INLINE = {"<listcomp>", "<setcomp>", "<dictcomp>"}  # no frames of their own since Python 3.12

DEEP = "the call stack overflowed: functions called each other too deeply"
DEEP_HINT = "look for endless recursion, or use a loop"
WAITING = "the program waits for something that can never happen"
WAITING_HINT = "it awaits something that nothing is left to finish: look for a future, queue, lock or event that nobody sets"


def line_of(code, lasti):
    """The line of an instruction."""
    from dis import findlinestarts

    line = code.co_firstlineno
    for start, number in findlinestarts(code):
        if start > lasti:
            break
        line = number or line
    return line


def clip(text, most):
    text = str(text)
    return text if len(text) <= most else text[:most] + "…"


def size(count):
    """A size for people."""
    value, unit = float(count), 0
    while value >= 1024 and unit < 4:
        value, unit = value / 1024, unit + 1
    form = "%.0f %s" if value == int(value) or value >= 100 else "%.1f %s"
    return form % (value, ("bytes", "kB", "MB", "GB", "TB")[unit])


class Reporter:
    """Words failures of the program with this name and text."""

    def __init__(self, name, source, memory, modules=()):
        self.name, self.memory = name, memory
        self.sources = {m["file"]: m["code"] for m in modules}
        self.sources[name] = source
        self.lines = {}
        self.depth = 0  # of the program's stack, once own has looked at it

    def report(self, error):
        """The status and error of a program that raised error. It does not fail, unless
        there is no memory for words and that is the error."""
        try:
            status, told = self.describe(error)
        except RecursionError:
            status, told = "error", {"kind": "runtime", "message": type(error).__name__}
        except Exception:
            if isinstance(error, MemoryError):
                raise
            status, told = "error", {"kind": "runtime", "message": "something was raised that cannot be read"}
        return status, {name: value for name, value in told.items() if value}

    def describe(self, error):
        if isinstance(error, SyntaxError) and getattr(error, "filename", None) == self.name and self.own(error.__traceback__) == []:
            return "error", self.syntax(error)
        stack = self.own(error.__traceback__)
        if isinstance(error, MemoryError) or isinstance(error, OSError) and error.errno == ENOMEM:
            told = {"kind": "limit", "message": "the program needed more than its %s of memory" % size(self.memory)}
            told["hint"] = "process the data in parts and keep only what the result needs"
            if self.depth > ENDLESS:
                told["message"], told["hint"] = told["message"] + ": functions called each other until it was gone", DEEP_HINT
            return "memory_limit", self.located(told, stack)
        if isinstance(error, RecursionError) or isinstance(error, SystemError) and self.depth > ENDLESS:
            return "error", self.located({"kind": "limit", "message": DEEP, "hint": DEEP_HINT}, stack)
        if isinstance(error, ToolError):
            told = {"kind": clip(error.kind, BRIEF), "message": clip(str(error) + causes(error), LONG), "hint": clip(error.hint, LONG)}
            told.update(server=clip(error.server, BRIEF), tool=clip(error.tool, BRIEF))
            return "error", self.located(told, stack or self.site(error))
        told = {"kind": "runtime", "message": clip(message_of(error) + causes(error), LONG), "hint": hint_of(error)}
        return "error", self.located(told, stack)

    def syntax(self, error):
        line, column = error.lineno or 0, error.offset or 0
        told = {"kind": "syntax", "message": "%s: %s" % (type(error).__name__, error.msg), "line": line, "column": max(column, 0)}
        if line:
            told["stack"] = "at %s:%d:%d" % (self.name, line, max(column, 1))
        return told

    def located(self, told, stack):
        if stack:
            for place in stack:
                if place[3] == self.name:
                    told["line"], told["column"] = place[1:3]
                    break
            told["stack"] = "\n".join(self.frame(*place) for place in stack[:MOST_FRAMES])
        return told

    def frame(self, function, line, column, file):
        place = "%s:%d:%d" % (file, line, column)
        return "at %s" % place if function == "<module>" else "at %s (%s)" % (clip(function, 100), place)

    def own(self, traceback):
        """The frames of the program, innermost first; of a deep stack the inner ones."""
        kept, self.depth = [], 0
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if code.co_filename in self.sources:
                self.depth += 1
                kept.append((code, traceback.tb_lasti, traceback.tb_lineno))
                if len(kept) > 20 * MOST_FRAMES:
                    del kept[: 10 * MOST_FRAMES]
            traceback = traceback.tb_next
        found = []
        for code, lasti, line in kept:
            function = code.co_name
            if function in INLINE and found:
                function = found.pop()[0]
            found.append((function, line, self.column(code, lasti, line), code.co_filename))
        return found[::-1]

    def site(self, error):
        """Where the call was made whose failure nobody awaited."""
        site = getattr(error, "_site", None)
        if site is None or site[0].co_filename not in self.sources:
            return []
        code, lasti = site
        line = line_of(code, lasti)
        return [(code.co_name, line, self.column(code, lasti, line), code.co_filename)]

    def column(self, code, lasti, line):
        """The column of an instruction; before Python 3.11 that of its line."""
        file = code.co_filename
        if file not in self.lines:
            self.lines[file] = self.sources[file].split("\n")
        lines = self.lines[file]
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        if hasattr(code, "co_positions"):
            for i, (first, _, start, _) in enumerate(code.co_positions()):
                if i == lasti // 2:
                    if first == line and start is not None:
                        return len(text.encode()[:start].decode("utf-8", "replace")) + 1
                    break
        return len(text) - len(text.lstrip()) + 1


def message_of(error):
    """The type and the text of what was raised, with what may have been meant."""
    name = type(error).__name__
    text = str(error)
    if isinstance(error, (NameError, AttributeError)) and "Did you mean" not in text:
        text += suggestion(error)
    return "%s: %s" % (name, text) if text else name


def suggestion(error):
    """The name that was meant by one that does not exist, as part of a message."""
    wrong = getattr(error, "name", None) or str(error).partition("name '")[2].partition("'")[0]
    if not isinstance(wrong, str) or len(wrong) < 3:
        return ""
    if isinstance(error, AttributeError):
        names = dir(getattr(error, "obj", None))
    else:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        names = [*trace.tb_frame.f_locals, *trace.tb_frame.f_globals, *vars(builtins)]
    from difflib import get_close_matches

    near = get_close_matches(wrong, [n for n in names if isinstance(n, str) and not n.startswith("__retort")], 1, 0.75)
    return ". Did you mean: '%s'?" % near[0] if near else ""


def causes(error):
    """The errors behind and inside of an error, which say what really happened."""
    out, seen = "", {id(error)}
    inner = error
    for _ in range(3):
        cause = inner.__cause__
        word = "cause"
        if cause is None and not inner.__suppress_context__:
            cause, word = inner.__context__, "while handling"
        if cause is None or id(cause) in seen:
            break
        seen.add(id(cause))
        out += " (%s: %s)" % (word, brief(cause))
        inner = cause
    nested = getattr(error, "exceptions", None)
    if isinstance(nested, (tuple, list)):
        for i, one in enumerate(nested[:5]):
            out += "\n  [%d] %s" % (i, brief(one))
    return out


def brief(error):
    text = str(error)
    return clip("%s: %s" % (type(error).__name__, text) if text else type(error).__name__, BRIEF)


def hint_of(error):
    """What to do about the mistakes that are made most."""
    text = str(error)
    if isinstance(error, AttributeError):
        if "'dict' object has no attribute" in text:
            return "results of tools are plain dicts: write value[%r], or value.get(%r)" % ((getattr(error, "name", None) or text.rpartition("attribute ")[2].strip("'\""),) * 2)
        if "'list' object has no attribute" in text or "'str' object has no attribute" in text:
            return "the value is not what was expected: print it once to see its shape"
    if isinstance(error, TypeError) and ("string indices must be" in text or "list indices must be" in text):
        return "the value is not what was expected: print it once to see its shape"
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith(("servers", "skills", "client")):
        return "only Python's standard library and the servers can be imported"
    return ""
