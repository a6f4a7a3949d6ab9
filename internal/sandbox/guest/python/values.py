"""Values as JSON.

What JSON knows is written by the interpreter's own encoder. Where a value has
something else inside, the whole is written here: a date as its ISO text, a
Decimal as a number, or in results as text if a double does not hold all of its
digits, a Fraction, UUID, path or duration as text, bytes as their text or else
base64, a set, iterator or view as a list, a named tuple, dataclass or any other
instance as an object, an exception as {name, message} and its attributes, what
has tolist, item, model_dump, to_dict or _asdict as that gives it. Keys become
text; a dict of which two keys have the same text becomes the list of its items.
NaN and infinities become null. Functions, classes and modules are left out. The
last two are told as warnings, see warnings.
"""

import sys

int_text, float_text = int.__repr__, float.__repr__


def refused(value):
    raise TypeError


class Reading:
    """What the scanner is told."""

    strict, object_hook, object_pairs_hook, parse_float, parse_int = True, None, None, float, int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__


try:
    # Package json comes with regular expressions, which take 7 ms to load.
    from _json import encode_basestring as quoted, make_encoder, make_scanner

    def encode(value):
        return "".join(make_encoder({}, refused, quoted, None, ":", ",", False, False, False)(value, 0))

    scan = make_scanner(Reading)
except ImportError:  # an interpreter without its parts in C
    import json
    from json.encoder import encode_basestring as quoted

    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    scan = json.JSONDecoder().scan_once


SPACE = " \t\r\n"  # of JSON


def loads(text):
    """The value of valid JSON."""
    return scan(text.strip(SPACE), 0)[0]


LEFT_OUT = object()
PLAIN = {str, int, float, bool, type(None)}
MAX_DEPTH = 5000
MAX_ITEMS = 50_000_000  # of an iterator


RESULT = "the result"
MAX_WARNINGS, MAX_LISTED, MAX_PARTS, MAX_KEY = 5, 5, 8, 40

warnings = []  # of the report: what JSON does not hold, each once


def render(value, name=None):
    """The JSON of a value, as bytes; None if it has none. What JSON does not hold of it
    is warned of if the value has a name."""
    text = quickly(value)
    if text is None:
        writer = Writer(exact=name == RESULT)
        text = writer.text(value)
        if name is not None:
            warn(name, writer)
    if text is None:
        return None
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return escaped(text).encode()


def warn(name, writer):
    listed = writer.lost
    if writer.losses > len(listed):
        listed = listed + ["and %d more" % (writer.losses - len(listed))]
    warning = "JSON does not hold all of %s: %s" % (name, "; ".join(listed))
    if listed and warning not in warnings and len(warnings) < MAX_WARNINGS:
        warnings.append(warning)


def quickly(value):
    """The JSON of a value that has nothing unusual inside; None otherwise."""
    try:
        text = encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return None
    return text if is_plain(value) else None


def escaped(text):
    return "".join(c if c < "\ud800" or c > "\udfff" else "\\u%04x" % ord(c) for c in text)


def is_plain(value):
    """Whether the encoder writes a value, which has no circles, as it is meant."""
    stack = [value]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in PLAIN:
            continue
        if kind is dict:
            for key in node:
                if type(key) is not str:
                    return False
            stack.extend(node.values())
        elif kind is list:
            stack.extend(node)
        else:
            return False
    return True


class Writer:
    """Writes one value."""

    def __init__(self, exact=False):
        self.exact = exact  # whoever reads the value reads numbers as doubles
        self.parents = set()
        self.path = []
        self.lost, self.losses = [], 0

    def lose(self, what):
        self.losses += 1
        if len(self.lost) < MAX_LISTED:
            parts = self.path[-MAX_PARTS:]
            start = "$" if len(parts) == len(self.path) else "$…"
            self.lost.append("%s%s: %s" % (start, "".join(part if len(part) <= MAX_KEY else '["…"]' for part in parts), what))

    def text(self, value):
        out = []
        written = self.write(value, out.append)
        return "".join(out) if written else None

    def write(self, value, put, gone="was left out"):
        """Writes a value, unless it is left out; then the answer is False."""
        kind = type(value)
        if kind is str:
            put(quoted(value))
        elif value is None:
            put("null")
        elif value is True:
            put("true")
        elif value is False:
            put("false")
        elif kind is int:
            put(int_text(value))
        elif kind is float:
            if value - value == 0:
                put(float_text(value))
            else:
                self.lose("%s became null" % value)
                put("null")
        elif kind is dict:
            self.inside(value, self.mapping, put)
        elif kind is list or kind is tuple:
            self.inside(value, self.sequence, put)
        else:
            return self.other(value, put, gone)
        return True

    def inside(self, value, write, put, *more):
        """Writes a container, if it is not inside of itself."""
        mark = id(value)
        if mark in self.parents:
            place = "$" + "".join(self.path)
            raise TypeError("the value contains itself at %s, which JSON cannot express" % place)
        if len(self.parents) > MAX_DEPTH:
            raise RecursionError
        self.parents.add(mark)
        write(value, put, *more)
        self.parents.discard(mark)

    def mapping(self, value, put):
        pairs = list(value.items())
        if len({key if type(key) is str else key_text(key) for key, _ in pairs}) == len(pairs):
            self.pairs(pairs, put)
        else:  # 1 and "1"
            self.lose("a dict with keys that have the same text became the list of its items")
            self.sequence(pairs, put)

    def pairs(self, pairs, put):
        put("{")
        comma = ""
        for key, item in list(pairs):
            name = key if type(key) is str else key_text(key)
            head = comma + quoted(name) + ":"
            self.path.append("." + name if name.isidentifier() else "[%s]" % quoted(name))
            part = []
            if self.write(item, part.append):
                put(head)
                put("".join(part) if len(part) != 1 else part[0])
                comma = ","
            self.path.pop()
        put("}")

    def sequence(self, value, put):
        put("[")
        for i, item in enumerate(value):
            if i:
                put(",")
            self.path.append("[%d]" % i)
            if not self.write(item, put, "became null"):
                put("null")
            self.path.pop()
        put("]")

    def other(self, value, put, gone):
        plain, write = translate(value)
        if plain is LEFT_OUT:
            self.lose("a %s %s" % (kind_of(value), gone))
            return False
        if write is None:
            if plain is None:
                self.lose("%s became null" % value)
            return self.write(plain, put)
        if write == "decimal":
            self.decimal(value, put)
        elif write == "raw":
            put(plain)
        elif write == "dict":
            self.inside(value, self.mapping, put)
        elif write == "pairs":
            self.inside(value, lambda _, put: self.pairs(plain, put), put)
        elif write == "list":
            self.inside(value, lambda _, put: self.sequence(plain, put), put)
        else:
            self.inside(value, lambda _, put: self.write(plain, put), put)
        return True


    def decimal(self, value, put):
        if not value.is_finite():
            self.lose("%s became null" % value)
            put("null")
        elif self.exact and value != value.to_integral_value() and type(value)(float_text(float(value))) != value:
            put(quoted(str(value)))
        else:
            put(str(value))


def kind_of(value):
    if isinstance(value, type):
        return "class"
    return "coroutine" if is_awaitable(value) else type(value).__name__.replace("builtin_function_or_method", "function")


def key_text(key):
    """How a key is written that is no text."""
    if key is None or key is True or key is False:
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, (str, tuple)):
        return str(key)
    plain, how = translate(key)
    return str(key if how in ("pairs", "dict", "list", "inside") or plain is LEFT_OUT else plain)


def translate(value):
    """What a value of an unusual type is written as, and how: None as any value,
    "raw" as it stands, "pairs" as an object, "list" as a list, "inside" as a
    value that may contain this one."""
    for module, name, write in BY_MODULE:
        cls = loaded(module, name)
        if cls is not None and isinstance(value, cls):
            return write(value), how_of(write)
    kind = type(value)
    if isinstance(value, str):
        return str.__str__(value), None
    if isinstance(value, bool) or kind is type(NotImplemented) or kind is type(...):
        return None, None
    if isinstance(value, int):
        return int_text(value), "raw"
    if isinstance(value, float):
        return float(value), None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes_text(bytes(value)), None
    if isinstance(value, complex):
        return str(value), None
    if isinstance(value, BaseException):
        return exception_pairs(value), "pairs"
    if isinstance(value, LEFT_OUT_TYPES) or is_awaitable(value) or hasattr(kind, "__anext__"):
        return LEFT_OUT, None
    return instance(value, kind)


def instance(value, kind):
    """Instances by what they can do."""
    for method, arguments in (("model_dump", ()), ("tolist", ()), ("item", ()), ("_asdict", ()), ("to_dict", ("records",)), ("to_dict", ())):
        call = getattr(kind, method, None)
        if call is None:
            continue
        try:
            return call(value, *arguments), "inside"
        except (TypeError, ValueError):
            continue
    if isinstance(value, dict):
        return value, "dict"
    if isinstance(value, (set, frozenset)):
        return in_order(value), "list"
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        return [(name, getattr(value, name)) for name in fields if hasattr(value, name)], "pairs"
    if hasattr(kind, "keys") and hasattr(kind, "__getitem__"):
        return [(key, value[key]) for key in value.keys()], "pairs"
    if hasattr(kind, "__iter__") or hasattr(kind, "__getitem__") and hasattr(kind, "__len__"):
        return bounded(value), "list"
    return attributes(value, kind)


def attributes(value, kind):
    found = dict(getattr(value, "__dict__", ()))
    for cls in kind.__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in found and hasattr(value, name):
                found[name] = getattr(value, name)
    pairs = [(name, item) for name, item in found.items() if not name.startswith("_")]
    if pairs or kind.__module__ in ("__main__", "types"):
        return pairs, "pairs"
    return str(value), None


def bounded(value):
    items = []
    for item in value:
        items.append(item)
        if len(items) > MAX_ITEMS:
            raise ValueError("the value has an iterator without an end")
    return items


def in_order(items):
    """The elements of a set in an order that is the same in every run."""
    try:
        return sorted(items)
    except TypeError:
        return list(items)


def bytes_text(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        from binascii import b2a_base64

        return b2a_base64(data, newline=False).decode()


def exception_pairs(error):
    pairs = [("name", type(error).__name__), ("message", str(error))]
    pairs += [(k, v) for k, v in vars(error).items() if not k.startswith("_") and k not in ("message", "name")]
    if error.__cause__ is not None:
        pairs.append(("cause", error.__cause__))
    return pairs


def decimal_text(value):
    return str(value)


def iso(value):
    return value.isoformat()


def fraction_text(value):
    return str(value)


def match_text(value):
    return value.group()


def how_of(write):
    return "decimal" if write is decimal_text else None


# Types that are looked for only when their module is loaded.
BY_MODULE = (
    ("enum", "Enum", lambda value: value.value),
    ("datetime", "datetime", iso),
    ("datetime", "date", iso),
    ("datetime", "time", iso),
    ("datetime", "timedelta", str),
    ("datetime", "tzinfo", str),
    ("decimal", "Decimal", decimal_text),
    ("fractions", "Fraction", fraction_text),
    ("pathlib", "PurePath", str),
    ("uuid", "UUID", str),
    ("re", "Pattern", lambda value: value.pattern),
    ("re", "Match", match_text),
    ("time", "struct_time", list),
)


def loaded(module, name):
    found = sys.modules.get(module)
    return None if found is None else getattr(found, name, None)


LEFT_OUT_TYPES = (type, type(render), type(len), type(sys), type(Writer().text), staticmethod, classmethod, property)


def is_awaitable(value):
    return hasattr(type(value), "__await__") or type(value).__name__ == "coroutine"


def awaitables(value, budget=200_000):
    """Lists what in a value, which may have circles, must be awaited, with
    functions that put the outcome in its place."""
    found, seen, stack = [], set(), [value]
    while stack and budget > 0:
        node = stack.pop()
        kind = type(node)
        if kind in PLAIN or id(node) in seen:
            continue
        budget -= 1
        seen.add(id(node))
        if kind is dict:
            pairs = list(node.items())
        elif kind is list:
            pairs = list(enumerate(node))
        else:
            continue
        for key, item in pairs:
            if is_awaitable(item):
                found.append((node, key, item))
            else:
                stack.append(item)
    return found
