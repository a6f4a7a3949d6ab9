"""Runs one program."""

import builtins
import sys

calls, values, rewriting = need("calls"), need("values"), need("rewrite")
NOTHING = object()
CO_COROUTINE = 0x80
ROUNDS = 10  # of results with something to await inside
PLAIN_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")


class Return(BaseException):
    """Carries the value of a return outside of functions."""

    def __init__(self, value=NOTHING):
        super().__init__()
        self.value = value


def file_name(name):
    """The name of a program in stack traces: its own, unless that would make them
    hard to read."""
    return name if name and len(name) <= 100 and set(name) <= PLAIN_NAME else "program.py"


class Program:
    def __init__(self, start, source, caller):
        self.name = file_name(start.get("name"))
        self.source, self.caller = source, caller
        self.module = type(sys)("__main__")
        self.globals = self.module.__dict__
        self.surroundings = need("globals").Surroundings(caller, start.get("namespaces") or [], start.get("modules") or [])
        self.shape = None

    def run(self):
        """The JSON of the program's value, None if it has none. What it raises is
        the program's failure."""
        value = self.evaluate()
        if value is NOTHING:
            return None
        text = self.render(value)
        if text is not None and value is None:
            return b"null"
        return text

    def evaluate(self):
        self.globals.update(__file__="/" + self.name, __builtins__=builtins, __loader__=self, __spec__=None)
        sys.modules["__main__"] = self.module
        tree = rewriting.parse(self.source, self.name)
        self.shape = rewriting.rewrite(tree, self.source, self.surroundings.meanings)
        code = rewriting.finish(tree, self.name)
        del tree
        builtins.__dict__.update({rewriting.LATER: calls.later, rewriting.RETURN: Return, rewriting.AWAITED: awaited, rewriting.ITERATED: iterated})
        self.surroundings.install(self.globals, self.shape.free)
        return self.outcome(code)

    def outcome(self, code):
        # Short, as are all functions that a MemoryError passes: behind the 256th
        # instruction the interpreter needs memory to pass it on, and never ends.
        try:
            self.execute(code)
            called = self.call_main()
        except Return as returned:
            return self.settled(returned.value)
        except SystemExit as ended:
            called = self.ended(ended)
        return self.settled(self.value(called))

    def execute(self, code):
        outcome = eval(code, self.globals)
        if code.co_flags & CO_COROUTINE:
            need("loop").main_loop().run_until_complete(outcome)

    def call_main(self):
        name = self.shape.called
        if name is None or not callable(self.globals.get(name)):
            return NOTHING
        return self.settled(self.globals[name]())

    def ended(self, ended):
        """What becomes of a program that ended itself."""
        if ended.code not in (None, 0, False):
            raise ended
        return NOTHING

    def value(self, called):
        if "result" in self.globals:
            return self.globals["result"]
        trailing = self.globals.pop(rewriting.VALUE, None)
        if called is not NOTHING and called is not None:
            return called
        return NOTHING if trailing is None else trailing

    def settled(self, value):
        """A value, awaited if it must be."""
        if value is not NOTHING and values.is_awaitable(value):
            return need("loop").main_loop().run_until_complete(value)
        if hasattr(type(value), "__aiter__"):
            return need("loop").main_loop().run_until_complete(collected(value))
        return value

    def render(self, value):
        for _ in range(ROUNDS):
            if "asyncio" not in sys.modules:
                break
            found = values.awaitables([value])
            if not found:
                break
            loop = need("loop").main_loop()
            for container, key, item in found:
                container[key] = loop.run_until_complete(item)
        return values.render(value, values.RESULT)

    def get_source(self, name):
        """For tracebacks that the program prints."""
        return self.source


async def collected(items):
    return [item async for item in items]


def awaited(value):
    """That of loop, in whose place it stands until it is called."""
    builtins.__dict__[rewriting.AWAITED] = need("loop").awaited
    return need("loop").awaited(value)


def iterated(value):
    return need("loop").iterated(value)
