"""What the wrappers of the servers need.

Inside of Retort every function here is the environment's own. Elsewhere there
is nothing to call: run a program with ``retort run FILE``.
"""

import builtins


class ToolError(Exception):
    """A tool answered with an error, or could not be called."""

    def __init__(self, message="", kind="tool_error", server="", tool="", hint=""):
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.server = server
        self.tool = tool
        self.hint = hint


class _Unset:
    """Stands for an argument that is not given."""

    def __repr__(self):
        return "unset"


unset = _Unset()


def _own(name):
    try:
        return getattr(builtins, name)
    except AttributeError:
        raise RuntimeError("There is no Retort here: run this program with `retort run FILE`.") from None


def call_mcp_tool(name, arguments=None):
    """Calls a tool by its raw name, server__tool, with a dict of arguments."""
    return _own("call_mcp_tool")(name, arguments or {})


def search_tools(query, detail="description"):
    """Finds tools by what they do."""
    return _own("search_tools")(query, detail)


def pages(tool, *args, **kwargs):
    """The items of the list that a tool returns page by page. Each page is a call."""
    return _own("pages")(tool, *args, **kwargs)


def approve(purpose, calls, *rows, **options):
    """Asks a person once about calls that the program is going to make."""
    return _own("approve")(purpose, calls, *rows, **options)


def sleep(ms):
    """Waits for milliseconds."""
    return _own("sleep")(ms)


def given(arguments):
    """The arguments that are given."""
    return {name: value for name, value in arguments.items() if value is not unset}
