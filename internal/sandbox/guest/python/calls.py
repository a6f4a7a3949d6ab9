"""Calls to the host. A tool that is called plainly blocks and gives its value.
later(tool) gives what starts the call and can be awaited."""

import sys
from _thread import get_ident

values = need("values")
render, loads, scan, SPACE = values.render, values.loads, values.scan, values.SPACE


Call = None  # that of loop, once there is one


def under_way():
    return need("loop").Call


class ToolError(Exception):
    """A tool answered with an error, or could not be called."""

    def __init__(self, message="", kind="tool_error", server="", tool="", hint=""):
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.server = server
        self.tool = tool
        self.hint = hint

    def __str__(self):
        return str(self.message)


ToolError.__module__ = "client"


class Caller:
    """What makes calls, through the one channel."""

    def __init__(self, channel):
        self.channel = channel
        self.under_way = 0  # calls of tools without an answer so far

    def own(self, name, **arguments):
        """Calls one of the engine's own functions."""
        return self.now(head_of("", name), render(arguments) or b"{}", "", name)

    def now(self, head, body, server, tool):
        self.under_way += 1
        answer_head, answer = self.channel.call(head, body)
        self.under_way -= 1
        return value_of(answer_head, answer, server, tool)


def head_of(server, tool):
    named = {"server": server, "tool": tool} if server else {"tool": tool}
    return render(named)


def value_of(head, body, server, tool):
    if len(head) > 2:
        error = loads(str(head, "utf-8", "replace")).get("error")
        if error is not None:
            raise ToolError(
                error.get("message", ""), error.get("kind", "tool_error"), error.get("server", server), error.get("tool", tool), error.get("hint", "")
            )
    text = str(body, "utf-8", "replace")
    try:
        return scan(text.strip(SPACE), 0)[0]
    except RecursionError:
        return deeply(text)


def deeply(text):
    """Reads JSON that is nested deeper than programs may usually go."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20_000))
    try:
        return loads(text)
    finally:
        sys.setrecursionlimit(before)


class Callable:
    """Something of the host's that is called plainly, or later."""

    def __init__(self, caller, name, server, tool):
        self.__name__ = self.__qualname__ = name
        self.__doc__ = None
        self._caller, self._server, self._tool = caller, server, tool
        self._head = head_of(server, tool)

    def __call__(self, /, *args, **kwargs):
        if args or self._renames:
            kwargs = self._arrange(args, kwargs)
        return self._caller.now(self._head, self._encode(kwargs), self._server, self._tool)

    def later(self, /, *args, **kwargs):
        """The call under way, to be awaited."""
        if args or self._renames:
            kwargs = self._arrange(args, kwargs)
        return (Call or under_way())(self._caller, self._head, self._encode(kwargs), self._server, self._tool)

    _renames = True

    def _encode(self, arguments):
        return render(arguments, "the arguments of " + self.__qualname__)

    def __repr__(self):
        return "<tool %s>" % self.__qualname__

    def __get__(self, instance, owner=None):  # as a function in a class is
        return self


class Tool(Callable):
    """A tool of a server. function is the host's description of it."""

    def __init__(self, caller, namespace, server, function):
        super().__init__(caller, function["name"], server, function["tool"])
        self.__qualname__ = "%s.%s" % (namespace, self.__name__)
        self._params = function.get("params") or []
        self._keywords = function.get("keywords") or self._params
        self._renames = {**(function.get("also") or {}), **{k: p for k, p in zip(self._keywords, self._params) if k != p}}
        self._object = function.get("object", False)
        self._nulls = set(function.get("nulls") or ())

    def _arrange(self, args, kwargs):
        """The arguments object of a call with positional or renamed arguments."""
        if not args:
            arguments = {}
        elif len(args) == 1 and type(args[0]) is dict and self._is_whole(args[0]):
            arguments = dict(args[0])
        else:
            arguments = self._positional(args)
        renames = self._renames
        for name, value in kwargs.items():
            name = renames.get(name, name)
            if name in arguments:
                raise TypeError("%s got several values for %s" % (self.__qualname__, name))
            arguments[name] = value
        return arguments

    def _is_whole(self, value):
        """Whether a dict is all arguments and not the first of them."""
        return not self._object or bool(value) and all(name in self._params for name in value)

    def _positional(self, args):
        if len(args) > len(self._params):
            takes = "one dict, or in this order: " + ", ".join(self._keywords) if self._params else "no arguments"
            raise TypeError("%s takes %s; %d were given" % (self.__name__, takes, len(args)))
        return dict(zip(self._params, args))

    def _encode(self, arguments):
        """The arguments as JSON. None stands for an argument that is not given,
        where null would mean nothing."""
        if None in arguments.values():
            params, nulls = self._params, self._nulls
            arguments = {k: v for k, v in arguments.items() if v is not None or k in nulls or k not in params}
        return super()._encode(arguments)


class ByName(Callable):
    """call_mcp_tool(name, arguments)."""

    def __init__(self, caller, name="call_mcp_tool"):
        super().__init__(caller, name, "", "call")
        self._begins = {}  # name of a tool → the JSON before its arguments

    def _arrange(self, args, kwargs):
        return by_name(*args, **kwargs)

    def _encode(self, call):
        name, arguments, fresh = call
        begin = self._begins.get(name)
        if begin is None:
            begin = self._begins[name] = b'{"name":%b,"arguments":' % render(name)
        body = render(arguments, "the arguments of %s" % name) if arguments else b"{}"
        return begin + body + (b',"no_cache":true}' if fresh else b"}")


def by_name(name, arguments=None, options=None, /, **named):
    """A tool's name, its arguments, and whether the cache is left out."""
    if arguments is not None and not isinstance(arguments, dict):
        raise TypeError("call_mcp_tool takes the tool's name and a dict of its arguments")
    if named:
        arguments = {**(arguments or {}), **named}
    return str(name), arguments, bool(options and options.get("no_cache"))


class Search(Callable):
    """search_tools(query, detail)."""

    def __init__(self, caller, name="search_tools"):
        super().__init__(caller, name, "", "search_tools")

    def _arrange(self, args, kwargs):
        return search(*args, **kwargs)


def search(query="", detail=None, server=None, category=None, limit=None, detail_level=None):
    given = {"query": query, "detail_level": detail or detail_level, "server": server, "category": category, "limit": limit}
    return {name: value for name, value in given.items() if value is not None}


class Own(Callable):
    """A function of the engine's own whose arguments have names."""

    def __init__(self, caller, name, tool, params):
        super().__init__(caller, name, "", tool)
        self._params = params

    def _arrange(self, args, kwargs):
        if len(args) > len(self._params):
            raise TypeError("%s takes %s" % (self.__name__, ", ".join(self._params)))
        return {**dict(zip(self._params, args)), **kwargs}


class LoadedSkill(str):
    """The code of a skill. The other fields are its items and attributes."""

    def __new__(cls, fields):
        self = super().__new__(cls, fields.get("code", ""))
        self.__dict__.update(fields)
        return self

    def __getitem__(self, key):
        return self.__dict__[key] if isinstance(key, str) else super().__getitem__(key)

    def get(self, key, default=None):
        return self.__dict__.get(key, default)

    def keys(self):
        return self.__dict__.keys()

    def items(self):
        return self.__dict__.items()


class LoadSkill(Own):
    """load_skill(name, version)."""

    def __init__(self, caller):
        super().__init__(caller, "load_skill", "load_skill", ["name", "version"])

    def __call__(self, /, *args, **kwargs):
        return LoadedSkill(super().__call__(*args, **kwargs))

    def later(self, /, *args, **kwargs):
        return self._loaded(super().later(*args, **kwargs))

    async def _loaded(self, call):
        return LoadedSkill(await call)


class Sleep(Callable):
    """sleep(ms)."""

    def __init__(self, caller):
        super().__init__(caller, "sleep", "", "sleep")

    def __call__(self, ms=0):
        import time

        self._caller.channel.flush()
        time.sleep(max(ms, 0) / 1000)

    def later(self, ms=0):
        import asyncio

        return asyncio.sleep(max(ms, 0) / 1000)


class Pages:
    """The items of a list that a tool returns page by page. The host knows how each
    tool pages, so that what is here only asks for one page after the other."""

    _head = head_of("", "page")

    def __init__(self, tool, args, kwargs):
        if args or tool._renames:
            kwargs = tool._arrange(args, kwargs)
        self._tool = tool
        self._begin = b'{"server":%b,"tool":%b,"arguments":%b,"list":' % (render(tool._server), render(tool._tool), tool._encode(kwargs) or b"{}")

    def _body(self, list_):
        return self._begin + b"%d}" % list_

    def __iter__(self):
        tool, list_ = self._tool, 0
        while list_ is not None:
            page = tool._caller.now(self._head, self._body(list_), tool._server, tool._tool)
            yield from page["items"]
            list_ = page.get("list")

    async def __aiter__(self):
        tool, list_ = self._tool, 0
        while list_ is not None:
            page = await (Call or under_way())(tool._caller, self._head, self._body(list_), tool._server, tool._tool)
            for item in page["items"]:
                yield item
            list_ = page.get("list")

    def __repr__(self):
        return "<pages of %s>" % self._tool.__qualname__


def pages(tool, /, *args, **kwargs):
    """The items of a list that a tool returns page by page. After the tool come the
    arguments of the call."""
    tool = tool_of(tool)
    if tool is None:
        raise TypeError("pages takes a function of a server, such as pages(github.list_issues, owner=o, repo=r)")
    return Pages(tool, args, kwargs)


def tool_of(function):
    """The tool that a function of a server calls, or None."""
    function = getattr(function, "_tool", function) if not isinstance(function, Tool) else function
    return function if isinstance(function, Tool) else None


class Approve(Callable):
    """approve(purpose, calls, optional=False): asks a person once about several calls
    that the program is going to make."""

    def __init__(self, caller):
        super().__init__(caller, "approve", "", "approve")

    def _arrange(self, args, kwargs):
        return approval(*args, **kwargs)

    def _encode(self, asked):
        purpose, calls, optional = asked
        return b'{"purpose":%b,"calls":[%b],"optional":%b}' % (render(str(purpose)), b",".join(calls), b"true" if optional else b"false")


def approval(purpose, calls, rows=None, /, *, optional=False):
    """What the host is asked: calls are pairs of a tool and its arguments, or one tool
    with the arguments of each of its calls in rows."""
    if rows is not None:
        return purpose, [call_text(calls, arguments) for arguments in rows], optional
    return purpose, [call_text(*(one if isinstance(one, (tuple, list)) else (one["tool"], one.get("arguments")))) for one in calls], optional


def call_text(tool, arguments=None):
    if isinstance(tool, str):
        return b'{"name":%b,"arguments":%b}' % (render(tool), render(arguments or {}))
    known = tool_of(tool)
    if known is None:
        raise TypeError("approve takes calls such as (github.close_issue, {'number': 1}): the first is a function of a server, or the name of a tool")
    arguments = known._arrange((), arguments or {})
    return b'{"server":%b,"tool":%b,"arguments":%b}' % (render(known._server), render(known._tool), known._encode(arguments) or b"{}")


def later(function):
    """What a program calls where it awaits the outcome."""
    if isinstance(function, Callable):
        return function.later
    functools = sys.modules.get("functools")
    if functools is not None and type(function) is functools.partial and isinstance(function.func, Callable):
        return functools.partial(function.func.later, *function.args, **function.keywords)
    return function


class Group:
    """A name with functions of the engine's own: state, pii."""

    def __init__(self, caller, name, functions):
        self._name, self._functions = name, functions
        for function, params in functions.items():
            setattr(self, function, Own(caller, function, "%s_%s" % (name, function), params))

    def __repr__(self):
        return "<%s>" % self._name


class Personal(Group):
    """What can be told of the values that tokens stand for."""

    def sort_by(self, items, key=None):
        items = list(items)
        of = key if callable(key) else (lambda item: item) if key is None else (lambda item: item[key])
        ranks = self.ranks([str(of(item)) for item in items])
        return [items[i] for i in sorted(range(len(items)), key=ranks.__getitem__)]
