"""The skills that a program imports: modules that came with it. Each is executed
once, when it is first imported."""

import sys

rewriting = need("rewrite")
ModuleType = type(sys)


class Skills(ModuleType):
    """All skills that came, by name: the module skills, and the global."""

    def __init__(self, modules, surroundings):
        super().__init__("skills")
        self.__dict__["__path__"] = []
        self.__dict__["_modules"] = {identifier(m["name"]): m for m in modules}
        self.__dict__["_surroundings"] = surroundings
        self.__dict__["__all__"] = sorted(self._modules)

    def __getattr__(self, name):
        if name.startswith("__") or name not in self._modules:
            raise AttributeError(missing(name))
        return self._load(name)

    def __dir__(self):
        return list(self.__all__)

    def _load(self, name):
        full = "skills." + name
        if full not in sys.modules:
            __import__(full)
        return sys.modules[full]

    def module(self, name):
        """The empty module of a skill, for import."""
        if name not in self._modules:
            raise ModuleNotFoundError(missing(name), name="skills." + name)
        return ModuleType("skills." + name)

    def execute(self, module):
        entry = self._modules.get(module.__name__.partition(".")[2])
        if entry is None:
            return
        code, free = compiled(entry["code"], entry["file"], self._surroundings.meanings)
        module.__file__ = "/" + entry["file"]
        self._surroundings.install(module.__dict__, free)
        exec(code, module.__dict__)


def compiled(source, file, meanings):
    """What a skill is when it runs, and the names that it uses and does not bind."""
    tree = rewriting.parse(source, file)
    free = rewriting.rewrite_module(tree, source, meanings)
    return compile(tree, file, "exec", 0, True), free


def identifier(name):
    return name.replace("-", "_")


def missing(name):
    return "there is no skill %r in this program: it imports those that it names, from skills import %s" % (name, name)
