"""The servers as programs see them: modules of functions, made when they are
first looked at. And what can be imported beside the standard library."""

import sys

calls, loads = need("calls"), need("values").loads
ModuleType = type(sys)


HELPERS = ("ToolError", "call_mcp_tool", "callMCPTool", "search_tools", "searchTools", "pages", "approve", "sleep")  # in every module of servers, where nothing else has the name


class Namespace(ModuleType):
    """A server: a module that cannot be changed. It has itself as a member, since
    programs write from servers.crm import crm."""

    def __init__(self, caller, entry, name, helpers):
        super().__init__("servers." + name)
        own = self.__dict__
        own["__path__"] = []
        functions = loads(entry["functions"]) if isinstance(entry["functions"], str) else entry["functions"] or []
        self.__dict__["_by_tool"] = by_tool = {}
        for function in functions:
            tool = calls.Tool(caller, name, entry["server"], function)
            own[function["name"]] = by_tool[function["tool"]] = tool
        own["__all__"] = [function["name"] for function in functions]
        own["__doc__"] = "The tools of %s." % entry["server"]
        own["_helpers"] = helpers

    def __setattr__(self, name, value):
        if not name.startswith("__"):
            raise AttributeError("%s cannot be changed" % short(self))
        super().__setattr__(name, value)

    def __delattr__(self, name):
        raise AttributeError("%s cannot be changed" % short(self))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == short(self):
            return self
        if name in HELPERS:
            return self._helpers[name]
        raise AttributeError(absent("%s has no tool %r" % (short(self), name), name, self.__all__))

    def __dir__(self):
        return list(self.__all__)

    def __repr__(self):
        return "<server %s>" % short(self)


def short(namespace):
    return namespace.__name__.rpartition(".")[2]


def absent(message, name, names):
    from difflib import get_close_matches

    near = get_close_matches(name, names, 1, 0.6)
    if near:
        return "%s. Did you mean %s?" % (message, near[0])
    return "%s; there are %s" % (message, ", ".join(names[:12])) if names else message


class Servers(ModuleType):
    """All servers by name."""

    def __init__(self, registry):
        super().__init__("servers")
        self.__dict__["__path__"] = []
        self.__dict__["_registry"] = registry
        self.__dict__["__all__"] = registry.names

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._registry.find(name)
        if found is None and name in HELPERS:
            return self._registry.own[name]
        if found is None:
            raise AttributeError(absent("there is no server %r" % name, name, self._registry.names))
        return found

    def __dir__(self):
        return list(self._registry.names)


class Registry:
    """The servers that a program can name, and the finder that imports them."""

    def __init__(self, caller, entries, own):
        self.caller, self.own = caller, own
        self.entries, self.made, self.names = {}, {}, []
        for entry in entries:
            modules = entry.get("modules") or [entry["server"]]
            name = entry.get("global") or identifier(modules)
            self.names.append(name)
            for spelling in [name, *modules]:
                self.entries.setdefault(spelling, (name, entry))
        self.servers = Servers(self)
        self.skills = None  # see Surroundings

    def find(self, spelling):
        found = self.entries.get(spelling)
        if found is None:
            return None
        name, entry = found
        if name not in self.made:
            self.made[name] = Namespace(self.caller, entry, name, self.own)
        return self.made[name]

    def module(self, name):
        """What import of a name gives; None if that is not for here."""
        if name == "servers":
            return self.servers
        if name in ("client", "servers.client"):
            return self.client()
        if name == "skills":
            return self.skills
        if name.startswith("skills."):
            return self.skills.module(name.partition(".")[2])
        head, _, rest = name.partition(".")
        if head != "servers" or not rest:
            return None
        server, _, tool = rest.partition(".")
        namespace = self.find(server)
        if namespace is None:
            raise ModuleNotFoundError(absent("there is no server %r" % server, server, self.names))
        return self.tool_module(namespace, name, tool) if tool else namespace

    def tool_module(self, namespace, name, tool):
        found = namespace.__dict__.get(tool) or namespace._by_tool.get(tool)
        if not isinstance(found, calls.Callable):
            raise ModuleNotFoundError(absent("%s has no tool %r" % (short(namespace), tool), tool, namespace.__all__))
        module = ToolModule(name)
        module.__dict__[found.__name__] = module.__dict__["_tool"] = found
        return module

    def client(self):
        module = ModuleType("client")
        module.__dict__.update({name: self.own[name] for name in HELPERS}, unset=UNSET, given=given)
        return module

    # The protocol of importlib.

    def find_spec(self, name, path=None, target=None):
        head = name.partition(".")[0]
        if head not in ("servers", "client", "skills"):
            if head in sys.modules or path is not None:
                return None
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, is_package=head == "servers" or name == "skills")

    def create_module(self, spec):
        return self.module(spec.name)

    def exec_module(self, module):
        if module.__name__.startswith("skills."):
            self.skills.execute(module)

    def get_source(self, name):
        """For tracebacks that a program prints."""
        return None


class ToolModule(ModuleType):
    """The module of one tool, which can itself be called."""

    def __call__(self, *args, **kwargs):
        return self._tool(*args, **kwargs)

    @property
    def later(self):
        return self._tool.later


class Unset:
    """Stands for an argument that is not given."""

    def __repr__(self):
        return "unset"


UNSET = Unset()


def given(arguments):
    return {name: value for name, value in arguments.items() if value is not UNSET}


def identifier(spellings):
    for spelling in spellings:
        if spelling.isidentifier():
            return spelling
    return spellings[0]
