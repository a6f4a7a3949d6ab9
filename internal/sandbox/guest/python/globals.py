"""What programs find around them: output, the servers, helpers, modules."""

import builtins
import sys

calls, servers, rewriting = need("calls"), need("servers"), need("rewrite")


class Surroundings:
    def __init__(self, caller, namespaces, modules):
        call_mcp_tool, search_tools = calls.ByName(caller), calls.Search(caller)
        self.own = {
            "ToolError": calls.ToolError,
            "call_mcp_tool": call_mcp_tool,
            "callMCPTool": call_mcp_tool,
            "search_tools": search_tools,
            "searchTools": search_tools,
            "pages": calls.pages,
            "approve": calls.Approve(caller),
            "sleep": calls.Sleep(caller),
            "state": calls.Group(caller, "state", {"get": ["key", "default"], "set": ["key", "value"], "delete": ["key"], "keys": []}),
            "pii": calls.Personal(caller, "pii", {"domain": ["token"], "equals": ["token", "other"], "mask": ["token"], "country": ["token"], "ranks": ["tokens"], "age": ["token"]}),
            "exec_command": calls.Own(caller, "exec_command", "exec", ["command", "args", "stdin"]),
            "load_skill": calls.LoadSkill(caller),
        }
        self.registry = servers.Registry(caller, namespaces, self.own)
        self.own["servers"] = self.registry.servers
        self.own["skills"] = self.registry.skills = need("skills").Skills(modules, self)
        files = need("files")
        for name in ("read_file", "write_file", "list_files"):
            self.own[name] = getattr(files, name)
        self.globals = {entry["global"]: entry["global"] for entry in namespaces if entry.get("global")}
        # What names mean that a program does not bind, for those who follow its values.
        self.meanings = {name: "servers." + name for name in self.globals}
        self.meanings.update({name: name for name in rewriting.MODULES})
        self.meanings.update({name: "own." + name for name in ("call_mcp_tool", "callMCPTool", "search_tools", "searchTools", "sleep", "exec_command")}, servers="servers")
        sys.meta_path.insert(0, self.registry)

    def install(self, namespace, free):
        """Gives a program the names that it uses and does not bind."""
        for name in self.own:
            builtins.__dict__[name] = self.own[name]
        for name in free:
            if (name in self.own or hasattr(builtins, name)) and not (name in ("pages", "approve") and name in self.globals):  # a server counts before these
                continue
            if name in self.globals:
                namespace[name] = self.registry.find(name)
            elif name == "datetime":
                namespace[name] = either_datetime()
            elif name in rewriting.MODULES:
                namespace[name] = __import__(name)
            elif name in rewriting.NAMES:
                module = __import__(rewriting.NAMES[name], fromlist=[name])
                namespace[name] = getattr(module, name)


def either_datetime():
    """The module datetime for a program that has not imported it, and may mean
    the class in it."""
    import datetime

    real = datetime.datetime

    class Kind(type(datetime)):
        def __call__(self, *args, **kwargs):
            return real(*args, **kwargs)

        def __getattr__(self, name):
            return getattr(datetime, name) if hasattr(datetime, name) else getattr(real, name)

        def __instancecheck__(self, value):
            return isinstance(value, real)

    either = Kind("datetime")
    either.__dict__.update({k: v for k, v in vars(datetime).items() if not k.startswith("__")})
    return either


def leave(code=None):
    raise SystemExit(code)


def no_input(prompt="", /):
    if prompt:
        print(prompt, end="")
    raise EOFError("there is no input: nobody is there to type; put the values into the program")


def install_basics(channel):
    """What every program has, whatever it uses."""
    import faulthandler
    import io
    import os

    faulthandler.enable(2, all_threads=False)  # where the program was, should the interpreter crash; see Crash in crash.go
    network = need("network").kept()
    os.environ.clear()  # of what the interpreter put there itself
    os.environ.update(network)

    class Out(io.BufferedIOBase):
        """Where all output goes."""

        def write(self, data):
            size = len(data)
            channel.print(data)
            return size

        def writable(self):
            return True

        def flush(self):
            pass

        def isatty(self):
            return False

        def fileno(self):
            raise io.UnsupportedOperation("output is no file here")

        def close(self):
            pass

    def text():
        return io.TextIOWrapper(Out(), "utf-8", "backslashreplace", newline="\n", write_through=True)

    sys.stdout = sys.__stdout__ = text()
    sys.stderr = sys.__stderr__ = text()
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BytesIO(b""), "utf-8")
    sys.argv = ["program.py"]
    builtins.input = no_input
    builtins.exit = builtins.quit = leave
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
