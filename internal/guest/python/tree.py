"""The syntax tree of a program as the gate's rules read it: the kinds of nodes are
those of package rules, which says what their texts and children are."""

import _ast

scopes_part = need("scopes")
AST = _ast.AST
MOST = 400_000  # nodes
WIDTH = 8  # numbers of a node: kind, size, line, column, end line, end column, variable, text
KINDS = """other name string template number constant regexp member index slice call new import imported
    function parameter class property object array loop branch logical binary unary assign delete
    spread await return throw""".split()
NUMBER = {name: i for i, name in enumerate(KINDS)}
NAME, NAME_NUMBER = _ast.Name, NUMBER["name"]
OPERATORS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "Mod": "%", "Pow": "**", "FloorDiv": "//", "LShift": "<<", "RShift": ">>", "BitOr": "|", "BitXor": "^",
    "BitAnd": "&", "MatMult": "@", "And": "and", "Or": "or", "Not": "not", "USub": "-", "UAdd": "+", "Invert": "~", "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=",
    "Gt": ">", "GtE": ">=", "Is": "is", "IsNot": "is not", "In": "in", "NotIn": "not in",
}  # fmt: skip


def tree(root, scopes):
    """The nodes of a tree in preorder, WIDTH numbers each, and the texts that they
    name by their place from 1 on; None if there are too many."""
    builder = Builder(scopes)
    try:
        return {"kinds": KINDS, "nodes": " ".join(map(str, builder.build(root))), "texts": list(builder.texts)}
    except OverflowError:
        return None


class Made:
    """A node that the syntax tree of Python does not have."""

    __slots__ = ("kind", "text", "bind", "inner")

    def __init__(self, kind, text="", inner=(), bind=0):
        self.kind, self.text, self.inner, self.bind = kind, text, inner, bind


class Builder:
    def __init__(self, scopes):
        self.scopes, self.texts, self.variables, self.out = scopes, {}, {}, []

    def build(self, root):
        out, handlers, texts, number = self.out, BY_TYPE, self.texts, NUMBER
        place = (1, 0, 1, 0)
        stack = [(root, self.scopes.module, place)]
        while stack:
            item = stack.pop()
            if item.__class__ is int:  # the end of a node
                out[item + 1] = (len(out) - item) // WIDTH
                continue
            node, scope, place = item
            if node.__class__ is Made:
                made = node
            else:
                if getattr(node, "end_lineno", None) is not None:
                    place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                if node.__class__ is NAME:
                    out += (NAME_NUMBER, 1, *place, self.bound(node.id, scope), texts.setdefault(node.id, len(texts) + 1))
                    continue
                made = handlers.get(node.__class__, other)(self, node, scope)
                if made.__class__ is not Made:  # it stands for another
                    stack.append((made[0], made[1], place) if made.__class__ is tuple else (made, scope, place))
                    continue
            at = len(out)
            if at > MOST * WIDTH:
                raise OverflowError
            text = made.text
            out += (number[made.kind], 1, *place, made.bind, texts.setdefault(text, len(texts) + 1) if text else 0)
            if made.inner:
                stack.append(at)
                for child in reversed(made.inner):
                    if child.__class__ is tuple:
                        stack.append((child[0], child[1], place))
                    elif child is not None:
                        stack.append((child, scope, place))
        return out

    def bound(self, name, scope):
        """The number of a variable; 0 if nothing binds the name."""
        owner = scope.find(name)
        return 0 if owner is None else self.variables.setdefault((id(owner), name), len(self.variables) + 1)


def other(b, node, scope):
    return Made("other", "", list(scopes_part.children(node)))


def module(b, node, scope):
    return Made("other", "", node.body)


def inside(field):
    return lambda b, node, scope: getattr(node, field)


def constant(b, node, scope):
    value = node.value
    if isinstance(value, str):
        return Made("string", value)
    if isinstance(value, bytes):
        return Made("string", value.decode("latin-1"))
    if isinstance(value, bool) or value is None or value is Ellipsis:
        return Made("constant", str(value))
    return Made("number", str(value) if not isinstance(value, int) or value.bit_length() < 64 else "huge")


def formatted(b, node, scope):
    if node.format_spec is None:
        return node.value
    return Made("other", "", [node.value, node.format_spec])


def slice_(b, node, scope):
    step = node.step
    back = node.lower is None and node.upper is None and isinstance(step, _ast.UnaryOp) and isinstance(step.operand, _ast.Constant) and step.operand.value == 1
    return Made("slice", "::-1" if back else "", [node.lower, node.upper, step])


def call(b, node, scope):
    words = [Made("property", k.arg, [k.value]) if k.arg else Made("spread", "", [k.value]) for k in node.keywords]
    return Made("call", "", [node.func] + node.args + words)


def operation(kind):
    def made(b, node, scope):
        if kind == "logical":
            return Made(kind, OPERATORS[type(node.op).__name__], node.values)
        inner = [node.operand] if kind == "unary" else [node.left, node.right]
        return Made(kind, OPERATORS[type(node.op).__name__], inner)

    return made


def compare(b, node, scope):
    return Made("binary", OPERATORS[type(node.ops[0]).__name__], [node.left] + node.comparators)


def branch(b, node, scope):
    return Made("branch", "if", [node.test] + node.body + node.orelse)


def choice(b, node, scope):
    return Made("branch", "?:", [node.test, node.body, node.orelse])


def for_(b, node, scope):
    return Made("loop", "for", [Made("assign", "of", [node.target, node.iter])] + node.body + node.orelse)


def while_(b, node, scope):
    return Made("loop", "while", [node.test] + node.body + node.orelse)


def comprehension(b, node, scope):
    inner = b.scopes.of.get(node, scope)
    items = []
    for i, g in enumerate(node.generators):
        items.append((Made("assign", "of", [(g.target, inner), (g.iter, scope if i == 0 else inner)]), inner))
        items += [(test, inner) for test in g.ifs]
    values = [node.key, node.value] if isinstance(node, _ast.DictComp) else [node.elt]
    return Made("loop", "comprehension", items + [(v, inner) for v in values])


def parameters(b, node, scope, inner):
    a = node.args
    plain = list(getattr(a, "posonlyargs", ())) + a.args
    defaults = dict(zip((id(p) for p in reversed(plain)), reversed(a.defaults)))
    defaults.update((id(p), d) for p, d in zip(a.kwonlyargs, a.kw_defaults))
    found = []
    for p in scopes_part.parameters(a):
        extra = [(n, scope) for n in (defaults.get(id(p)), p.annotation) if n is not None]
        found.append((Made("parameter", p.arg, extra, b.bound(p.arg, inner)), inner))
    return found


def function(b, node, scope):
    inner = b.scopes.of.get(node, scope)
    items = parameters(b, node, scope, inner)
    if isinstance(node, _ast.Lambda):
        return Made("function", "", items + [(node.body, inner)])
    if node.returns is not None:
        items.append((node.returns, scope))
    made = Made("function", node.name, items + [(s, inner) for s in node.body], b.bound(node.name, scope))
    return Made("other", "", node.decorator_list + [made]) if node.decorator_list else made


def class_(b, node, scope):
    inner = b.scopes.of.get(node, scope)
    items = node.bases + [Made("property", k.arg or "", [k.value]) for k in node.keywords]
    for s in node.body:
        if isinstance(s, (_ast.FunctionDef, _ast.AsyncFunctionDef)):
            items.append((Made("property", s.name, [s]), inner))
        else:
            items.append((s, inner))
    made = Made("class", node.name, items, b.bound(node.name, scope))
    return Made("other", "", node.decorator_list + [made]) if node.decorator_list else made


def assign(b, node, scope):
    value = node.value
    for target in reversed(node.targets):
        value = Made("assign", "=", [target, value])
    return value


def annotated(b, node, scope):
    if node.value is None:
        return Made("other", "", [node.target, node.annotation])
    return Made("assign", "=", [node.target, node.value, node.annotation])


def augmented(b, node, scope):
    return Made("assign", OPERATORS[type(node.op).__name__] + "=", [node.target, node.value])


def walrus(b, node, scope):
    return Made("assign", "=", [node.target, node.value])


def with_(b, node, scope):
    items = [Made("assign", "=", [i.optional_vars, i.context_expr]) if i.optional_vars is not None else i.context_expr for i in node.items]
    return Made("other", "", items + node.body)


def handler(b, node, scope):
    caught = [Made("parameter", node.name, (), b.bound(node.name, scope))] if node.name else []
    return Made("branch", "catch", caught + [node.type] + node.body)


def case(b, node, scope):
    return Made("branch", "case", list(scopes_part.children(node)))


def import_(b, node, scope):
    items = []
    for alias in node.names:
        if alias.asname or "." not in alias.name:
            items.append(Made("import", alias.name, [Made("imported", "*", (), b.bound(alias.asname or alias.name, scope))]))
        else:
            head = alias.name.partition(".")[0]
            items += [Made("import", alias.name), Made("import", head, [Made("imported", "*", (), b.bound(head, scope))])]
    return items[0] if len(items) == 1 else Made("other", "", items)


def import_from(b, node, scope):
    # A star is the name of everything; of a module itself, here, there is none.
    names = [Made("imported", "**" if a.name == "*" else a.name, (), 0 if a.name == "*" else b.bound(a.asname or a.name, scope)) for a in node.names]
    return Made("import", "." * node.level + (node.module or ""), names)


def dict_(b, node, scope):
    items = []
    for key, value in zip(node.keys, node.values):
        if key is None:
            items.append(Made("spread", "", [value]))
        elif isinstance(key, _ast.Constant) and isinstance(key.value, str) and key.value:
            items.append(Made("property", key.value, [value]))
        else:
            items.append(Made("property", "", [key, value]))
    return Made("object", "", items)


def simple(kind, *fields):
    """A node whose children are these fields."""

    def made(b, node, scope):
        inner = []
        for field in fields:
            value = getattr(node, field)
            inner += value if isinstance(value, list) else [value]
        return Made(kind, "", inner)

    return made


HANDLERS = {
    "Module": module, "Expr": inside("value"), "Constant": constant, "JoinedStr": simple("template", "values"), "FormattedValue": formatted,
    "Attribute": lambda b, node, scope: Made("member", node.attr, [node.value]), "Subscript": simple("index", "value", "slice"), "Slice": slice_, "Call": call,
    "Starred": simple("spread", "value"), "BinOp": operation("binary"), "BoolOp": operation("logical"), "UnaryOp": operation("unary"), "Compare": compare,
    "IfExp": choice, "If": branch, "For": for_, "AsyncFor": for_, "While": while_, "ListComp": comprehension, "SetComp": comprehension,
    "DictComp": comprehension, "GeneratorExp": comprehension, "Lambda": function, "FunctionDef": function, "AsyncFunctionDef": function, "ClassDef": class_,
    "Return": simple("return", "value"), "Raise": simple("throw", "exc", "cause"), "Await": simple("await", "value"), "Assign": assign, "AnnAssign": annotated,
    "AugAssign": augmented, "NamedExpr": walrus, "Delete": simple("delete", "targets"), "With": with_, "AsyncWith": with_, "ExceptHandler": handler,
    "match_case": case, "Import": import_, "ImportFrom": import_from, "Dict": dict_, "List": simple("array", "elts"), "Tuple": simple("array", "elts"),
    "Set": simple("array", "elts"),
}  # fmt: skip
BY_TYPE = {getattr(_ast, name): handler for name, handler in HANDLERS.items() if hasattr(_ast, name)}
