"""Which name of a program means which binding. Written for the nodes of _ast, so
that module ast need not be loaded."""

import _ast

FUNCTIONS = (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.Lambda)
COMPREHENSIONS = (_ast.ListComp, _ast.SetComp, _ast.DictComp, _ast.GeneratorExp)
# What neither binds a name nor has a scope, and is frequent.
PASSED = {_ast.Constant, _ast.Attribute, _ast.Call, _ast.Expr, _ast.BinOp, _ast.Compare, _ast.Subscript, _ast.Assign, _ast.keyword, _ast.If, _ast.For, _ast.Dict, _ast.List, _ast.Tuple, _ast.JoinedStr, _ast.FormattedValue, _ast.Return}
AST, Name, Store, Load = _ast.AST, _ast.Name, _ast.Store, _ast.Load


PLAIN = {"ctx", "op", "ops", "id", "attr", "type_comment", "level", "kind", "asname", "module", "is_async", "simple", "conversion"}
FIELDS = {_ast.Constant: ()}  # type of node → its fields that hold nodes


def children(node):
    """The nodes inside of a node, in the order of the text but for decorators.
    Operators are none."""
    kind = node.__class__
    fields = FIELDS.get(kind)
    if fields is None:
        fields = FIELDS[kind] = tuple(field for field in kind._fields if field not in PLAIN)
    found = []
    for field in fields:
        value = getattr(node, field, None)
        if value.__class__ is list:
            for item in value:
                if isinstance(item, AST):
                    found.append(item)
        elif isinstance(value, AST):
            found.append(value)
    return found


class Scope:
    """A part of the text with names of its own."""

    def __init__(self, kind, node, parent):
        self.kind, self.node, self.parent = kind, node, parent  # kind: module function class comprehension
        self.bindings = {}  # name → what binds it, in order
        self.elsewhere = {}  # name → "global" or "nonlocal"
        self.module = self if parent is None else parent.module

    def bind(self, name, what):
        self.bindings.setdefault(name, []).append(what)

    def find(self, name):
        """The scope that a name in this one belongs to; None if nothing binds it."""
        scope = self
        while scope is not None:
            where = scope.elsewhere.get(name)
            if where == "global":
                return scope.module if name in scope.module.bindings else None
            if name in scope.bindings and where is None and (scope.kind != "class" or scope is self):
                return scope
            scope = scope.parent
        return None

    def only(self, name):
        """What binds a name, if one thing does."""
        scope = self.find(name)
        found = scope.bindings[name] if scope is not None else ()
        return found[0] if len(found) == 1 else None


class Scopes:
    """The scopes of a program: of maps the nodes that have one to theirs."""

    def __init__(self, tree):
        self.of = {}
        self.module = self.of[tree] = Scope("module", tree, None)
        stack = [(child, self.module) for child in children(tree)]
        while stack:
            node, scope = stack.pop()
            self.enter(node, scope, stack)

    def enter(self, node, scope, stack):
        kind = node.__class__
        if kind is Name:
            if node.ctx.__class__ is not Load:
                scope.bind(node.id, node)
        elif kind in PASSED:
            for child in children(node):
                stack.append((child, scope))
        elif isinstance(node, FUNCTIONS):
            self.function(node, scope, stack)
        elif isinstance(node, _ast.ClassDef):
            scope.bind(node.name, node)
            inner = self.of[node] = Scope("class", node, scope)
            outer = node.decorator_list + node.bases + node.keywords
            stack.extend((n, scope) for n in outer)
            stack.extend((n, inner) for n in children(node) if n not in outer)
        elif isinstance(node, COMPREHENSIONS):
            inner = self.of[node] = Scope("comprehension", node, scope)
            first = node.generators[0]
            stack.append((first.iter, scope))
            stack.extend((n, inner) for n in children(first) if n is not first.iter)
            stack.extend((n, inner) for n in children(node) if n is not first)
        else:
            self.bind(node, scope)
            stack.extend((n, scope) for n in children(node))

    def function(self, node, scope, stack):
        inner = self.of[node] = Scope("function", node, scope)
        if not isinstance(node, _ast.Lambda):
            scope.bind(node.name, node)
            stack.extend((n, scope) for n in node.decorator_list)
            if node.returns is not None:
                stack.append((node.returns, scope))
            stack.extend((n, inner) for n in node.body)
        else:
            stack.append((node.body, inner))
        a = node.args
        for arg in parameters(a):
            inner.bind(arg.arg, arg)
            if arg.annotation is not None:
                stack.append((arg.annotation, scope))
        stack.extend((n, scope) for n in a.defaults + a.kw_defaults if n is not None)
        for parameter in getattr(node, "type_params", ()):
            inner.bind(parameter.name, parameter)

    def bind(self, node, scope):
        if isinstance(node, _ast.NamedExpr):
            while scope.kind == "comprehension":
                scope = scope.parent
            scope.bind(node.target.id, node)
        elif isinstance(node, (_ast.Import, _ast.ImportFrom)):
            for alias in node.names:
                if alias.name != "*":
                    scope.bind(alias.asname or alias.name.partition(".")[0], (node, alias))
        elif isinstance(node, (_ast.Global, _ast.Nonlocal)):
            for name in node.names:
                scope.elsewhere[name] = "global" if isinstance(node, _ast.Global) else "nonlocal"
                if isinstance(node, _ast.Global):
                    scope.module.bind(name, node)
        elif isinstance(node, _ast.ExceptHandler):
            if node.name:
                scope.bind(node.name, node)
        else:
            self.bind_pattern(node, scope)

    def bind_pattern(self, node, scope):
        kind = type(node).__name__
        name = getattr(node, "rest" if kind == "MatchMapping" else "name", None) if kind in ("MatchAs", "MatchStar", "MatchMapping", "TypeVar", "ParamSpec", "TypeVarTuple") else None
        if name:
            scope.bind(name, node)


def parameters(arguments):
    found = list(getattr(arguments, "posonlyargs", ())) + arguments.args + arguments.kwonlyargs
    return found + [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]


def dotted(node):
    """The names of a.b.c, first that of the root; None if it is no such chain."""
    names = []
    while isinstance(node, _ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, Name):
        return None
    names.append(node.id)
    return names[::-1]


def imported(binding):
    """The dotted name that an import binds; None if it is none, or relative."""
    if not isinstance(binding, tuple):
        return None
    node, alias = binding
    if isinstance(node, _ast.Import):
        return alias.name if alias.asname else alias.name.partition(".")[0]
    if node.module is None or node.level:
        return None
    return "%s.%s" % (node.module, alias.name)


def meaning(node, scope, globals_):
    """What a chain a.b.c means from the top: "servers.github.list_issues",
    "asyncio.gather". Names that nothing binds mean what globals_ says; the answer
    is None for everything else."""
    names = dotted(node)
    if names is None:
        return None
    root = imported(scope.only(names[0])) if scope.find(names[0]) is not None else globals_.get(names[0])
    return None if root is None else ".".join([root] + names[1:])
