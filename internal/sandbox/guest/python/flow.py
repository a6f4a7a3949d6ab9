"""Which calls of a program are awaited, wherever that happens.

github.get_issue(number=1) is a plain call that gives its value. The same call
in asyncio.gather(...) must give what can be awaited. Here it is found out by
following values from where they are awaited back to where they are made: through
names, lists, dicts, comprehensions, lambdas, parameters and what local functions
return. A call is made later only if every way that its value can take ends where
it is awaited; so nothing that a program uses plainly is ever a future. Where this
is in doubt the call is a plain one, and asyncio takes its value as one that is
there already: the result is right, only not concurrent.

A demand says what a place wants of the value that comes there: "A" something to
await, "C" a container of those, "FA" and "FC" functions that return them, "N"
anything, None a plain value. It may depend on what becomes of a variable:
("v", variable), ("c", d) a container of d, ("e", d) an element of d, ("f", d) a
function that returns d, ("r", d) what the function d returns.
"""

import _ast

scopes_part = need("scopes")
FUNCTIONS, COMPREHENSIONS, children = scopes_part.FUNCTIONS, scopes_part.COMPREHENSIONS, scopes_part.children
meaning = scopes_part.meaning
Name, Attribute, CallNode = _ast.Name, _ast.Attribute, _ast.Call

ALL = {"gather"}
FIRST = {"create_task", "ensure_future", "wait_for", "shield", "run", "run_until_complete", "run_coroutine_threadsafe"}
MANY = {"as_completed", "wait"}
ANY_OBJECT = {"create_task", "run_until_complete"}  # of a loop or a group
SAME = {"list", "tuple", "set", "reversed", "iter"}
OWN = {"call_mcp_tool", "callMCPTool", "search_tools", "searchTools", "sleep"}
READS_NAMES = {"globals", "locals", "vars", "exec", "eval"}


class Flow:
    def __init__(self, scopes, globals_):
        self.scopes, self.globals = scopes, globals_
        self.uses, self.calls, self.functions = [], [], []
        self.kinds = {}
        self.blind = False  # the program reads names that it computes
        self.scope, self.waits, self.returns = scopes.module, False, None
        self.visits = {
            getattr(_ast, name[6:]): method
            for name, method in ((name, getattr(self, name)) for name in dir(self) if name.startswith("visit_"))
            if hasattr(_ast, name[6:])
        }
        self.body(scopes.module.node.body)
        if not self.blind:
            self.solve()

    def solve(self):
        """Finds out what becomes of the variables."""
        kinds, value = self.kinds, self.value
        grown = True
        while grown:
            grown = False
            for variable, demand in self.uses:
                if variable not in kinds:
                    kind = value(demand)
                    if kind not in (None, "N") and variable[0].kind != "class" and variable[1] != "result":
                        kinds[variable] = kind
                        grown = True
        shrunk = True
        while shrunk:
            shrunk = False
            for variable, demand in self.uses:
                kind = kinds.get(variable)
                if kind is not None and value(demand) not in ("N", kind):
                    del kinds[variable]
                    shrunk = True

    def value(self, demand):
        if demand is None or type(demand) is str:
            return demand
        operation, of = demand
        if operation == "v":
            return self.kinds.get(of)
        of = self.value(of)
        if operation == "c":
            return {"A": "C", "N": "N"}.get(of)
        if operation == "e":
            return "A" if of == "C" else None
        if operation == "f":
            return "F" + of if of in ("A", "C") else None
        return of[1:] if of in ("FA", "FC") else None

    def later(self):
        """The calls that are made later, and the functions to be called so."""
        return [node for node, demand in self.calls_of("A")], [node for node, demand in self.functions if self.value(demand) == "FA"]

    def calls_of(self, kind):
        return [(node, demand) for node, demand, _ in self.calls if self.value(demand) == kind]

    def plain(self):
        """The calls of tools in async functions that a program makes plainly. They
        can be awaited there, so that other tasks go on."""
        return [node for node, demand, tool in self.calls if tool and self.value(demand) != "A"]

    # Statements

    def body(self, statements):
        for statement in statements:
            self.statement(statement)

    def statement(self, node):
        visit = self.visits.get(type(node))
        if visit is not None:
            visit(node, None)
            return
        for child in children(node):
            self.statement(child)

    def expression(self, node, demand=None):
        visit = self.visits.get(type(node))
        if visit is not None:
            visit(node, demand)
            return
        for child in children(node):
            self.expression(child)

    def variable(self, node):
        """The variable that a name means; None if it means none of the program's."""
        if not isinstance(node, Name):
            return None
        scope = self.scope.find(node.id)
        return None if scope is None else (scope, node.id)

    def inside(self, node, visit, waits=False):
        """Visits what is in the scope of a node."""
        before = self.scope, self.waits, self.returns
        self.scope, self.waits = self.scopes.of[node], waits
        visit()
        self.scope, self.waits, self.returns = before

    def visit_FunctionDef(self, node, _):
        self.function(node, False)

    def visit_AsyncFunctionDef(self, node, _):
        self.function(node, True)

    def function(self, node, is_async):
        known = not node.decorator_list and self.scope.kind != "class"
        returns = ("r", ("v", (self.scope, node.name))) if known and not is_async else None
        self.outside(node)

        def visit():
            self.returns = returns
            self.body(node.body)

        self.inside(node, visit, is_async)

    def outside(self, node):
        """Visits what stands at a function and is evaluated before it is called."""
        before, self.waits = self.waits, False
        for child in getattr(node, "decorator_list", []) + node.args.defaults + node.args.kw_defaults:
            if child is not None:
                self.expression(child)
        self.waits = before

    def visit_ClassDef(self, node, _):
        before, self.waits = self.waits, False
        for child in node.decorator_list + node.bases + [k.value for k in node.keywords]:
            self.expression(child)
        self.waits = before
        self.inside(node, lambda: self.body(node.body))

    def visit_Return(self, node, _):
        if node.value is not None:
            self.expression(node.value, self.returns)

    def visit_Yield(self, node, _):
        if node.value is not None:
            self.expression(node.value, ("e", self.returns) if self.returns else None)

    def visit_Assign(self, node, _):
        if len(node.targets) == 1:
            self.assign(node.targets[0], node.value)
            return
        self.expression(node.value)
        for target in node.targets:
            self.expression(target)

    def assign(self, target, value):
        variable = self.variable(target)
        if variable is not None:
            self.expression(value, ("v", variable))
        elif isinstance(target, _ast.Subscript) and self.variable(target.value) is not None:
            self.uses.append((self.variable(target.value), "N"))
            self.expression(target.slice)
            self.expression(value, ("e", ("v", self.variable(target.value))))
        elif isinstance(target, (_ast.Tuple, _ast.List)) and isinstance(value, (_ast.Tuple, _ast.List)) and len(target.elts) == len(value.elts) and not has_star(target.elts + value.elts):
            for t, v in zip(target.elts, value.elts):
                self.assign(t, v)
        else:
            self.expression(value)
            self.expression(target)

    def visit_AnnAssign(self, node, _):
        if node.value is not None:
            self.assign(node.target, node.value)

    def visit_AugAssign(self, node, _):
        variable = self.variable(node.target)
        if variable is not None and isinstance(node.op, _ast.Add):
            self.expression(node.value, ("v", variable))
            return
        self.expression(node.target)
        self.expression(node.value)
        if variable is not None:
            self.uses.append((variable, None))

    def visit_NamedExpr(self, node, demand):
        variable = self.variable(node.target)
        self.expression(node.value, ("v", variable) if variable else None)
        if variable is not None:
            self.uses.append((variable, demand))

    def visit_For(self, node, _):
        self.over(node.target, node.iter)
        self.body(node.body + node.orelse)

    visit_AsyncFor = visit_For

    def over(self, target, items):
        """Visits what a loop goes over. The demand is that for its targets."""
        variable = self.variable(target)
        if variable is not None:
            base = self.variable(items)
            if base is not None and self.is_dict(base):
                self.uses.append((base, "N"))
                self.uses.append((variable, None))
                return
            self.expression(items, ("c", ("v", variable)))
            return
        self.expression(target)
        parts = self.pairs(target, items)
        if parts is None:
            self.expression(items)
            return
        for part, demand in parts:
            self.expression(part, demand)

    def pairs(self, target, items):
        """The parts of enumerate(x), zip(x, y) and x.items() with their demands."""
        if not isinstance(target, _ast.Tuple) or not isinstance(items, CallNode) or has_star(target.elts) or items.keywords:
            return None
        demands = [("c", ("v", self.variable(t))) if self.variable(t) else None for t in target.elts]
        called = items.func
        if isinstance(called, Name) and self.scope.find(called.id) is None:
            if called.id == "enumerate" and len(demands) == 2 and len(items.args) >= 1:
                return [(items.args[0], demands[1])] + [(a, None) for a in items.args[1:]]
            if called.id == "zip" and len(demands) == len(items.args):
                return list(zip(items.args, demands))
        if isinstance(called, Attribute) and called.attr == "items" and not items.args and len(demands) == 2:
            return [(called.value, demands[1])]
        return None

    def is_dict(self, variable):
        return any(dict_made(self.scopes, binding) for binding in variable[0].bindings[variable[1]])

    # Expressions

    def visit_Name(self, node, demand):
        if node.id in READS_NAMES and self.scope.find(node.id) is None:
            self.blind = True
        variable = self.variable(node)
        if variable is not None and isinstance(node.ctx, _ast.Load):
            self.uses.append((variable, demand))

    def visit_Await(self, node, _):
        self.expression(node.value, "A")

    def visit_Lambda(self, node, demand):
        self.outside(node)
        self.inside(node, lambda: self.expression(node.body, ("r", demand) if demand else None))

    def visit_ListComp(self, node, demand):
        self.comprehension(node, demand, self.waits and self.scope.kind != "comprehension")

    visit_SetComp = visit_DictComp = visit_ListComp

    def visit_GeneratorExp(self, node, demand):
        self.comprehension(node, demand, False)

    def comprehension(self, node, demand, waits):
        first = node.generators[0]

        def visit():
            for generator in node.generators:
                for test in generator.ifs:
                    self.expression(test)
                if generator is not first:
                    self.over(generator.target, generator.iter)
            if isinstance(node, _ast.DictComp):
                self.expression(node.key)
            self.expression(node.value if isinstance(node, _ast.DictComp) else node.elt, ("e", demand) if demand else None)

        self.first(node, first)
        self.inside(node, visit, waits)

    def first(self, node, generator):
        """Visits what a comprehension goes over: its targets are inside, what it
        goes over is not."""
        inner, outer = self.scopes.of[node], self.scope
        resolve = self.variable

        def either(n):
            self.scope = inner if n is generator.target or n in getattr(generator.target, "elts", ()) else outer
            try:
                return resolve(n)
            finally:
                self.scope = outer

        self.variable = either
        targets = generator.target
        try:
            variable = either(targets)
            parts = None if variable else self.pairs(targets, generator.iter)
        finally:
            del self.variable
        if variable is not None:
            base = self.variable(generator.iter)
            if base is not None and self.is_dict(base):
                self.uses += [(base, "N"), (variable, None)]
            else:
                self.expression(generator.iter, ("c", ("v", variable)))
        elif parts is None:
            self.expression(generator.iter)
        else:
            for part, demand in parts:
                self.expression(part, demand)

    def visit_List(self, node, demand):
        for item in node.elts:
            if isinstance(item, _ast.Starred):
                self.expression(item.value, demand)
            else:
                self.expression(item, ("e", demand) if demand else None)

    visit_Tuple = visit_Set = visit_List

    def visit_Dict(self, node, demand):
        for key, value in zip(node.keys, node.values):
            if key is None:
                self.expression(value, demand)
            else:
                self.expression(key)
                self.expression(value, ("e", demand) if demand else None)

    def visit_IfExp(self, node, demand):
        self.tested(node.test)
        self.expression(node.body, demand)
        self.expression(node.orelse, demand)

    def visit_BoolOp(self, node, demand):
        for value in node.values:
            self.expression(value, demand)

    def visit_If(self, node, _):
        self.tested(node.test)
        self.body(node.body + node.orelse)

    visit_While = visit_If

    def tested(self, node):
        """Visits a condition: whether something is there may be asked of all."""
        self.expression(node, "N" if isinstance(node, Name) else None)

    def visit_UnaryOp(self, node, _):
        if isinstance(node.op, _ast.Not):
            self.tested(node.operand)
        else:
            self.expression(node.operand)

    def visit_Compare(self, node, _):
        for part in [node.left] + node.comparators:
            self.expression(part, "N" if isinstance(node.ops[0], (_ast.Is, _ast.IsNot)) and isinstance(part, Name) else None)

    def visit_BinOp(self, node, demand):
        demand = demand if isinstance(node.op, _ast.Add) else None
        self.expression(node.left, demand)
        self.expression(node.right, demand)

    def visit_Subscript(self, node, demand):
        if isinstance(node.ctx, _ast.Del) and isinstance(node.value, Name):
            self.expression(node.value, "N")
        elif isinstance(node.slice, _ast.Slice):
            self.expression(node.value, demand)
        else:
            self.expression(node.value, ("c", demand) if demand else None)
        self.expression(node.slice)

    def visit_Call(self, node, demand):
        if self.sink(node) or self.method(node, demand) or self.builtin(node, demand) or self.local(node, demand):
            return
        tool = self.waits and self.is_tool(node.func)
        self.calls.append((node, demand, tool))
        if isinstance(node.func, (Attribute, Name)):
            self.expression(node.func if isinstance(node.func, Name) else node.func.value)
        else:
            self.expression(node.func)
        self.arguments(node)

    def arguments(self, node):
        for argument in node.args:
            self.expression(argument)
        for keyword in node.keywords:
            self.expression(keyword.value)

    def is_tool(self, function):
        means = meaning(function, self.scope, self.globals)
        if means is None:
            return False
        parts = means.split(".")
        if parts[0] == "servers" and parts[1:2] == parts[2:3]:  # from servers.crm import crm
            del parts[2]
        return parts[0] == "servers" and len(parts) == 3 or parts[0] == "own" or parts[0] in ("client", "servers") and parts[-1] in OWN

    def sink(self, node):
        """Visits a call of something that awaits what it is given."""
        name = node.func.attr if isinstance(node.func, Attribute) else None
        means = meaning(node.func, self.scope, self.globals)
        if means is not None and means.startswith("asyncio."):
            name = means.rpartition(".")[2]
        elif name not in ANY_OBJECT:
            return False
        if name not in ALL and name not in FIRST and name not in MANY:
            return False
        self.expression(node.func)
        for i, argument in enumerate(node.args):
            if isinstance(argument, _ast.Starred):
                self.expression(argument.value, "C" if name in ALL else None)
            elif name in ALL:
                self.expression(argument, "A")
            else:
                self.expression(argument, ("A" if name in FIRST else "C") if i == 0 else None)
        for keyword in node.keywords:
            self.expression(keyword.value, {"coro": "A", "fut": "A", "main": "A", "fs": "C", "aws": "C"}.get(keyword.arg))
        return True

    def method(self, node, demand):
        """Visits a call of a method that adds to or takes from a container."""
        called = node.func
        if not isinstance(called, Attribute) or node.keywords or has_star(node.args):
            return False
        name, base, count = called.attr, called.value, len(node.args)
        variable = self.variable(base)
        if name in ("append", "add", "appendleft", "insert", "extend") and variable is not None and count == (2 if name == "insert" else 1):
            self.uses.append((variable, "N"))
            self.expression(node.args[-1], ("v", variable) if name == "extend" else ("e", ("v", variable)))
            for argument in node.args[:-1]:
                self.expression(argument)
        elif name in ("values", "copy") and count == 0:
            self.expression(base, demand)
        elif name in ("pop", "popleft", "get") and count < 2 and variable is not None:
            self.expression(base, ("c", demand) if demand else None)
            self.arguments(node)
        elif name in ("keys", "clear") and count == 0:
            self.expression(base, "N" if variable is not None else None)
        else:
            return False
        return True

    def builtin(self, node, demand):
        called = node.func
        means = meaning(called, self.scope, self.globals)
        if means == "functools.partial" and node.args:
            self.passed(node.args[0], demand)
            for argument in node.args[1:] + [k.value for k in node.keywords]:
                self.expression(argument)
            return True
        if not isinstance(called, Name) or self.scope.find(called.id) is not None or node.keywords or has_star(node.args):
            return False
        if called.id in SAME and len(node.args) == 1:
            self.expression(node.args[0], demand)
        elif called.id in ("len", "bool", "id", "type") and len(node.args) == 1:
            self.expression(node.args[0], "N" if isinstance(node.args[0], Name) else None)
        elif called.id == "map" and len(node.args) > 1:
            self.passed(node.args[0], ("f", ("e", demand)) if demand else None)
            for argument in node.args[1:]:
                self.expression(argument)
        else:
            return False
        return True

    def passed(self, function, demand):
        """Visits a function that is passed on to be called."""
        self.expression(function, demand)
        if not isinstance(function, _ast.Lambda) and demand is not None:
            self.functions.append((function, demand))

    def local(self, node, demand):
        """Visits a call of a function of the program."""
        variable = self.variable(node.func)
        if variable is None:
            return False
        bound = variable[0].bindings[variable[1]]
        definition = bound[0] if len(bound) == 1 and isinstance(bound[0], (_ast.FunctionDef, _ast.AsyncFunctionDef)) else None
        if definition is None and not all(isinstance(b, Name) for b in bound):
            return False
        self.uses.append((variable, ("f", demand) if demand else None))
        if definition is None:
            self.calls.append((node, demand, False))
            self.arguments(node)
            return True
        if isinstance(definition, _ast.AsyncFunctionDef):
            self.uses[-1] = variable, "N"
        inner = self.scopes.of[definition]
        positional = list(getattr(definition.args, "posonlyargs", ())) + definition.args.args
        starred = has_star(node.args)
        for i, argument in enumerate(node.args):
            known = i < len(positional) and not starred and not definition.decorator_list
            self.expression(argument, ("v", (inner, positional[i].arg)) if known else None)
        names = {p.arg for p in positional + definition.args.kwonlyargs}
        for keyword in node.keywords:
            self.expression(keyword.value, ("v", (inner, keyword.arg)) if keyword.arg in names and not definition.decorator_list else None)
        return True


def has_star(nodes):
    return any(isinstance(n, _ast.Starred) for n in nodes)


def dict_made(scopes, binding):
    """Whether a name is assigned a dict somewhere."""
    for node, value in assigned(scopes).get(id(binding), ()):
        if isinstance(value, (_ast.Dict, _ast.DictComp)) or isinstance(value, CallNode) and isinstance(value.func, Name) and value.func.id in ("dict", "defaultdict"):
            return True
    return False


def assigned(scopes):
    """The values of plain assignments, by the id of the name assigned to."""
    found = scopes.__dict__.get("assigned")
    if found is None:
        found = scopes.assigned = {}
        stack = [scopes.module.node]
        while stack:
            node = stack.pop()
            if isinstance(node, (_ast.Assign, _ast.AnnAssign)):
                for target in node.targets if isinstance(node, _ast.Assign) else [node.target]:
                    found.setdefault(id(target), []).append((target, node.value))
            stack.extend(children(node))
    return found
