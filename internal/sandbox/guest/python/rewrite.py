"""Makes of a program what runs: its top-level returns, its trailing expression,
its awaits. Positions stay those of the text."""

import _ast

scopes_part = need("scopes")
children, FUNCTIONS = scopes_part.children, scopes_part.FUNCTIONS

ONLY_AST, TOP_LEVEL_AWAIT = _ast.PyCF_ONLY_AST, _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
LATER, AWAITED, ITERATED = "__retort_later__", "__retort_awaited__", "__retort_iterated__"
RETURN, VALUE = "__retort_return__", "__retort_value__"

# Modules and names that programs use without importing them.
MODULES = frozenset(
    """asyncio base64 bisect calendar collections contextlib copy csv dataclasses datetime decimal difflib enum fractions
    functools glob hashlib heapq html io itertools json logging math operator os pathlib pprint random re shutil
    statistics string sys tempfile textwrap time traceback types typing unicodedata urllib uuid warnings zoneinfo""".split()
)
NAMES = {
    name: module
    for module, names in {
        "collections": "Counter OrderedDict defaultdict deque namedtuple",
        "concurrent.futures": "ThreadPoolExecutor",
        "dataclasses": "dataclass",
        "datetime": "date timedelta timezone",
        "decimal": "Decimal",
        "fractions": "Fraction",
        "functools": "partial reduce",
        "pathlib": "Path",
        "typing": "Any Callable Dict Iterable Iterator List Literal Mapping NamedTuple Optional Sequence Set Tuple TypedDict Union",
    }.items()
    for name in names.split()
}


def parse(source, name):
    return compile(source, name, "exec", ONLY_AST, True)


def finish(tree, name):
    return compile(tree, name, "exec", TOP_LEVEL_AWAIT, True)


class Shape:
    """What kind of program a tree is."""

    def __init__(self):
        self.called = None  # the function that is the program
        self.free = set()  # names that nothing binds


def rewrite(tree, source, globals_):
    """Rewrites a tree in place. globals_ says what names mean that nothing in the
    program binds."""
    shape = Shape()
    scopes = scopes_part.Scopes(tree)
    loaded = look(tree, scopes, shape)
    if "async" in source or "await" in source or "gather" in source:
        await_calls(tree, scopes, globals_)
    shape.called = sole_function(tree, scopes, loaded)
    top_returns(tree.body)
    trailing(tree.body)
    return shape


def rewrite_module(tree, source, globals_):
    """Rewrites the tree of a skill, which returns nothing. The names that nothing
    binds are the answer."""
    shape = Shape()
    scopes = scopes_part.Scopes(tree)
    look(tree, scopes, shape)
    if "async" in source or "await" in source or "gather" in source:
        await_calls(tree, scopes, globals_)
    return shape.free


def look(tree, scopes, shape):
    """Finds the names that nothing binds, and those that are used outside of
    the function that has the name."""
    loaded = set()
    stack = [(tree, scopes.module)]
    while stack:
        node, scope = stack.pop()
        if isinstance(node, _ast.Name):
            if scope.find(node.id) is None:
                shape.free.add(node.id)
            elif isinstance(node.ctx, _ast.Load):
                inside = scope
                while inside.kind != "module" and not (inside.parent.kind == "module" and getattr(inside.node, "name", None) == node.id):
                    inside = inside.parent
                if inside.kind == "module":
                    loaded.add(node.id)
        inner = scopes.of.get(node, scope)
        stack.extend((child, inner) for child in children(node))
    return loaded


def sole_function(tree, scopes, loaded):
    """The name of a function that is the program, as nothing calls it: main, or
    the only one of a program that does nothing else."""
    if "result" in scopes.module.bindings:
        return None
    functions = [s for s in tree.body if isinstance(s, (_ast.FunctionDef, _ast.AsyncFunctionDef))]
    for function in functions:
        if function.name == "main" and "main" not in loaded and callable_plainly(function):
            return "main"
    quiet = (_ast.Import, _ast.ImportFrom, _ast.Assign, _ast.AnnAssign, _ast.ClassDef)
    others = [s for s in tree.body if s not in functions and not isinstance(s, quiet) and not is_docstring(s)]
    if len(functions) == 1 and not others and tree.body[-1] is functions[0]:
        if functions[0].name not in loaded and callable_plainly(functions[0]):
            return functions[0].name
    return None


def callable_plainly(function):
    a = function.args
    positional = len(getattr(a, "posonlyargs", ())) + len(a.args)
    return positional == len(a.defaults) and None not in a.kw_defaults


def is_docstring(statement):
    return isinstance(statement, _ast.Expr) and isinstance(statement.value, _ast.Constant) and isinstance(statement.value.value, str)


def at(node, place):
    """Gives a new node, and those in it without one, the position of another."""
    for n in [node] + list(children(node)):
        if "lineno" in n._attributes and getattr(n, "lineno", None) is None:
            n.lineno, n.col_offset = place.lineno, place.col_offset
            n.end_lineno, n.end_col_offset = place.end_lineno, place.end_col_offset
            for child in children(n):
                at(child, place)
    return node


def call(name, arguments, place):
    return at(_ast.Call(func=_ast.Name(id=name, ctx=_ast.Load()), args=arguments, keywords=[]), place)


def blocks(statement):
    """The lists of statements in a statement that belong to the same function."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if isinstance(block, list):
            yield block
    for handler in getattr(statement, "handlers", ()) or ():
        yield handler.body
    for case in getattr(statement, "cases", ()) or ():
        yield case.body


def top_returns(body):
    """Makes the returns outside of functions end the program. Whether there are
    any is the answer."""
    found = False
    for i, statement in enumerate(body):
        if isinstance(statement, _ast.Return):
            arguments = [] if statement.value is None else [statement.value]
            body[i] = at(_ast.Raise(exc=call(RETURN, arguments, statement), cause=None), statement)
            found = True
        elif not isinstance(statement, (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef)):
            inside = [top_returns(block) for block in blocks(statement)]
            if any(inside) and isinstance(statement, _ast.Try) and statement.handlers:
                name = at(_ast.Name(id=RETURN, ctx=_ast.Load()), statement)
                again = at(_ast.Raise(exc=None, cause=None), statement)
                statement.handlers.insert(0, at(_ast.ExceptHandler(type=name, name=None, body=[again]), statement))
            found = found or any(inside)
    return found


def trailing(body):
    """Keeps the value of the trailing expression."""
    if not body:
        return
    last = body[-1]
    if isinstance(last, _ast.Expr) and not (len(body) == 1 and False):
        target = at(_ast.Name(id=VALUE, ctx=_ast.Store()), last)
        body[-1] = at(_ast.Assign(targets=[target], value=last.value, type_comment=None), last)
    elif isinstance(last, _ast.If) and is_main(last.test):
        trailing(last.body)


def is_main(test):
    """Whether a condition is __name__ == "__main__"."""
    if not isinstance(test, _ast.Compare) or len(test.comparators) != 1:
        return False
    return any(isinstance(side, _ast.Name) and side.id == "__name__" for side in (test.left, test.comparators[0]))


def await_calls(tree, scopes, globals_):
    """Makes the calls later that are awaited, and makes await take plain values."""
    flow = need("flow").Flow(scopes, globals_)
    calls, functions = ([], []) if flow.blind else flow.later()
    plain = flow.plain()
    wrapped = {id(node): None for node in functions}
    for node in calls + plain:
        node.func = call(LATER, [node.func], node.func)
    awaits = {id(node) for node in plain}
    replace(tree, wrapped, awaits)


def replace(tree, wrapped, awaits):
    stack = [tree]
    while stack:
        node = stack.pop()
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, _ast.AST):
                        value[i] = replaced(item, wrapped, awaits, stack)
            elif isinstance(value, _ast.AST):
                setattr(node, field, replaced(value, wrapped, awaits, stack))
        if isinstance(node, _ast.AsyncFor) or isinstance(node, _ast.comprehension) and node.is_async:
            node.iter = call(ITERATED, [node.iter], node.iter)


def replaced(node, wrapped, awaits, stack):
    """What stands in the place of a node; its inside is put on the stack."""
    stack.append(node)
    if id(node) in awaits:
        return at(_ast.Await(value=node), node)
    if id(node) in wrapped:
        return call(LATER, [node], node)
    if isinstance(node, _ast.Await):
        node.value = call(AWAITED, [node.value], node.value)
    return node
