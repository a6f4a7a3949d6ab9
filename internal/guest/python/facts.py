"""What is in a program, for the gate: it is parsed here and judged there.

Positions are lines and columns from 1 on, columns in code points.
"""

import _ast
import builtins
import gc
import sys

scopes_part, rewriting, tree_part = need("scopes"), need("rewrite"), need("tree")
children, dotted, imported = scopes_part.children, scopes_part.dotted, scopes_part.imported

MOST = 5000  # of each sort
DEEPEST = 40  # of literals
OWN = {
    "ToolError", "call_mcp_tool", "callMCPTool", "search_tools", "searchTools", "sleep", "state", "pii", "skills", "load_skill",
    "read_file", "write_file", "list_files", "servers", "exit", "quit",
    "__name__", "__file__", "__builtins__", "__doc__", "__spec__", "__loader__", "__package__", "__debug__", "__annotations__", "__dict__", "__class__",
    "__module__", "__qualname__", "__path__", "__cached__",
}  # fmt: skip
COMPUTE = {"globals", "locals", "vars", "exec", "eval", "compile", "__import__"}
ANNOTATED = {_ast.AnnAssign: "annotation", _ast.arg: "annotation", _ast.FunctionDef: "returns", _ast.AsyncFunctionDef: "returns"}
CONSTANTS = {str: "str", bool: "bool", int: "int", float: "float", type(None): "none", bytes: "bytes"}


def facts(source, options):
    """The facts of a program, or where it is none. Nothing of what is made on the
    way is garbage before the end, so nobody looks for any."""
    gc.disable()
    try:
        return found_in(source)
    finally:
        gc.enable()


def found_in(source):
    try:
        tree = rewriting.parse(source, "program.py")
        facts_of = Facts(tree, source)
        found = facts_of.all()
        found["tree"] = tree_part.tree(tree, facts_of.scopes)
        rewriting.top_returns(tree.body)
        rewriting.finish(tree, "program.py")
        return found
    except SyntaxError as error:
        return {"error": {"name": type(error).__name__, "message": str(error.msg), "line": error.lineno or 1, "column": max(error.offset or 1, 1)}}
    except (RecursionError, MemoryError):
        return {"error": {"name": "deep", "message": "the program is nested too deeply", "line": 1, "column": 1}}
    except ValueError as error:
        return {"error": {"name": "SyntaxError", "message": str(error), "line": 1, "column": 1}}


class Facts:
    def __init__(self, tree, source):
        self.tree, self.lines = tree, source.split("\n")
        self.scopes = scopes_part.Scopes(tree)
        self.imports, self.uses, self.names = [], [], {}
        self.computes = self.star = self.asks = False
        self.annotations, self.guarded, self.parents = set(), set(), {}

    def all(self):
        self.visit()
        return {
            "version": "%d.%d" % sys.version_info[:2],
            "imports": self.imports[:MOST],
            "uses": self.uses[:MOST],
            "names": list(self.names.values())[:MOST],
            "computes": self.computes,
            "star": self.star,
            "asks": self.asks,
        }

    def place(self, node):
        """The position of a node and its width on its first line."""
        start = self.column(node.lineno, node.col_offset)
        same = node.end_lineno == node.lineno
        end = self.column(node.end_lineno, node.end_col_offset) if same else start + 1
        return {"line": node.lineno, "column": start, "width": max(end - start, 1)}

    def column(self, line, offset):
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return (offset if text.isascii() else len(text.encode("utf-8", "replace")[:offset].decode("utf-8", "replace"))) + 1

    def member(self, node):
        """The position of the last name of a.b.c."""
        if not isinstance(node, _ast.Attribute):
            return self.place(node)
        column = self.column(node.end_lineno, node.end_col_offset) - len(node.attr)
        return {"line": node.end_lineno, "column": column, "width": len(node.attr)}

    def visit(self):
        stack = [(self.tree, self.scopes.module, False)]
        while stack:
            node, scope, quiet = stack.pop()
            kind = node.__class__
            quiet = quiet or id(node) in self.annotations
            if kind is _ast.Call:
                self.call(node, scope)
            elif kind is _ast.Attribute or kind is _ast.Name:
                self.chain(node, scope, quiet)
            elif kind is _ast.Import or kind is _ast.ImportFrom:
                self.bring(node)
            elif kind is _ast.Try:
                self.guard(node)
            elif kind in ANNOTATED:
                self.annotations.add(id(getattr(node, ANNOTATED[kind])))
            inner = self.scopes.of.get(node, scope)
            for child in reversed(children(node)):
                stack.append((child, scope if inner is scope else self.scope_of(child, node, scope, inner), quiet))
        self.uses.sort(key=lambda use: (use["line"], use["column"]))
        self.imports.sort(key=lambda i: (i["line"], i["column"]))

    def scope_of(self, child, node, scope, inner):
        """The scope of a child: what stands at a function, and what a comprehension
        goes over first, belongs to the scope around."""
        if isinstance(node, _ast.Lambda):
            return inner if child is node.body else scope
        if isinstance(node, scopes_part.FUNCTIONS):
            return inner if child in node.body else scope
        if isinstance(node, _ast.ClassDef):
            return inner if child in node.body else scope
        return inner

    def guard(self, node):
        """Takes note of what a program asks by trying."""
        caught = set()
        for handler in node.handlers:
            kinds = handler.type.elts if isinstance(handler.type, _ast.Tuple) else [handler.type]
            caught |= {kind.id if isinstance(kind, _ast.Name) else "" for kind in kinds}
        if caught & {"NameError", "Exception", "BaseException", ""} and len(node.body) <= 3:
            self.asks = self.asks or "NameError" in caught
        if caught & {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", ""}:
            self.guarded |= {id(statement) for statement in node.body}

    # Imports

    def bring(self, node):
        guarded = id(node) in self.guarded
        for alias in node.names:
            if isinstance(node, _ast.ImportFrom):
                module, name = "." * node.level + (node.module or ""), alias.name
            else:
                module, name = alias.name, ""
            place = self.place(alias if hasattr(alias, "lineno") else node)
            found = {"module": module, "name": name, "guarded": guarded, **place}
            found.update(self.known(module, name))
            if name == "*" and not module.startswith("servers"):
                self.star = True
            if module.partition(".")[0] == "importlib":
                self.computes = True
            self.imports.append(found)

    def known(self, module, name):
        """Whether the interpreter has a module, and the member where that is
        plain to see."""
        head = module.partition(".")[0]
        if head in ("servers", "client", "skills", "__future__", ""):
            return {"known": True}
        if not has_module(head):
            return {"known": False}
        loaded = usual(module) if name else None
        if loaded is not None and name and name != "*" and not hasattr(loaded, name) and not is_submodule(loaded, module, name):
            from difflib import get_close_matches

            return {"known": True, "lacks": True, "near": get_close_matches(name, [n for n in dir(loaded) if not n.startswith("_")], 2, 0.7)}
        return {"known": True}

    # Names

    def chain(self, node, scope, quiet):
        """Takes note of a.b.c where a is a name that nothing binds or one that is
        imported from the servers. What is in the middle of a chain, or called, was
        taken note of before."""
        if id(node) in self.parents:
            del self.parents[id(node)]
            self.hide(node)
            return
        self.hide(node)
        self.use(node, scope, quiet, None)

    def hide(self, node):
        if isinstance(node, _ast.Attribute) and isinstance(node.value, (_ast.Attribute, _ast.Name)):
            self.parents[id(node.value)] = node

    def use(self, node, scope, quiet, call, more=()):
        names = dotted(node)
        if names is None or not isinstance(node.ctx, _ast.Load):
            return
        owner = scope.find(names[0])
        if owner is None:
            self.free(node, names[0], quiet)
            path = names
        else:
            root = imported(scope.only(names[0]))
            if root is None or root.partition(".")[0] not in ("servers", "client"):
                return
            path = root.split(".") + names[1:]
        if hasattr(builtins, path[0]) and path[0] not in OWN:
            return
        use = {"path": path + list(more), "free": owner is None, **self.member(node)}
        if call is not None:
            use["call"] = call
        self.uses.append(use)

    def free(self, node, name, quiet):
        if name in COMPUTE:
            self.computes = True
        if name in OWN or name in rewriting.MODULES or name in rewriting.NAMES or hasattr(builtins, name) or quiet or name in self.names:
            return
        while isinstance(node, _ast.Attribute):
            node = node.value
        self.names[name] = {"name": name, **self.place(node)}

    def call(self, node, scope):
        called = node.func
        if isinstance(called, _ast.Name) and called.id == "getattr" and scope.find("getattr") is None and len(node.args) >= 2:
            literal = node.args[1]
            if isinstance(literal, _ast.Constant) and isinstance(literal.value, str) and isinstance(node.args[0], (_ast.Attribute, _ast.Name)) and len(node.args) == 2:
                self.parents[id(node.args[0])] = node
                self.use(node.args[0], scope, False, None, [literal.value])
            return
        if isinstance(called, (_ast.Attribute, _ast.Name)):
            self.parents[id(called)] = node
            self.use(called, scope, False, self.arguments(node))

    def arguments(self, node):
        keywords = [k for k in node.keywords if k.arg is not None]
        return {
            "args": [self.argument(a) for a in node.args[:100] if not isinstance(a, _ast.Starred)],
            "star": any(isinstance(a, _ast.Starred) for a in node.args),
            "keywords": [{"name": k.arg, **self.keyword(k), "value": self.argument(k.value)} for k in keywords[:500]],
            "double_star": len(keywords) < len(node.keywords),
            **self.place(node),
        }

    def keyword(self, node):
        return {"line": node.lineno, "column": self.column(node.lineno, node.col_offset), "width": len(node.arg)}

    def argument(self, node):
        """What is known of an argument: its kind, its JSON if it is a literal, and
        the keys of a dict."""
        found = self.place(node)
        literal = literal_of(node, 0)
        if literal is not UNKNOWN:
            found["json"] = literal
        found["kind"] = kind_of(node)
        if isinstance(node, _ast.Dict):
            plain = [k for k in node.keys if isinstance(k, _ast.Constant) and isinstance(k.value, str)]
            found["open"] = len(plain) < len(node.keys)
            found["keys"] = [
                {"name": k.value, **self.place(k), "value": {**self.place(v), "kind": kind_of(v), **json_of(v)}} for k, v in zip(node.keys, node.values) if k in plain
            ][:500]
        return found


UNKNOWN = object()


def json_of(node):
    literal = literal_of(node, 0)
    return {} if literal is UNKNOWN else {"json": literal}


def kind_of(node):
    if isinstance(node, _ast.Constant):
        return CONSTANTS.get(type(node.value), "")
    if isinstance(node, _ast.UnaryOp) and isinstance(node.op, _ast.USub):
        return kind_of(node.operand)
    for kind, name in ((_ast.JoinedStr, "str"), (_ast.List, "list"), (_ast.ListComp, "list"), (_ast.Dict, "dict"), (_ast.DictComp, "dict")):
        if isinstance(node, kind):
            return name
    return ""


def literal_of(node, depth):
    """The value of a literal that JSON can express; UNKNOWN for everything else."""
    if depth > DEEPEST:
        return UNKNOWN
    if isinstance(node, _ast.Constant):
        value = node.value
        plain = value is None or isinstance(value, (bool, str)) or isinstance(value, int) and abs(value) < 1 << 53 or isinstance(value, float) and value - value == 0
        return value if plain and (not isinstance(value, str) or len(value) <= 1000) else UNKNOWN
    if isinstance(node, _ast.UnaryOp) and isinstance(node.op, _ast.USub):
        value = literal_of(node.operand, depth + 1)
        return -value if type(value) in (int, float) else UNKNOWN
    if isinstance(node, _ast.List) and len(node.elts) <= 100:
        items = [literal_of(item, depth + 1) for item in node.elts]
        return UNKNOWN if any(item is UNKNOWN for item in items) else items
    if isinstance(node, _ast.Dict) and len(node.keys) <= 100:
        keys = [literal_of(key, depth + 1) if key is not None else UNKNOWN for key in node.keys]
        values = [literal_of(value, depth + 1) for value in node.values]
        if all(type(key) is str for key in keys) and not any(value is UNKNOWN for value in values):
            return dict(zip(keys, values))
    return UNKNOWN


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
