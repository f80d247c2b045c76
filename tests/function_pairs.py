"""Pairs of small gradients: a program, and the same with one node of its syntax tree changed.

Nothing is compiled: what a function computes is what Python says at a few points, by type and bits.
"""

from __future__ import annotations

import ast
import copy
import itertools
import random
import struct

POINTS = tuple(itertools.product((0, 1), (-2.3, 0.0, 0.7, 5.0)))
NUMBERS = (0, 0.0, -0.0, 1, 1.0, True, False, 2, 2.0, -1, 0.5, 3, -2.5, 1e-3, 2j, float("inf"))
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
ERRORS = (TypeError, NameError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)
CALL_THEMSELVES = {"gradient", "make", "nested"}
OUTSIDE = ("RATE", "GRID[1]", "PAIR[0]", "PAIR[1][1]")
FUNCTIONS = ("exp", "sin", "cos", "tanh", "floor", "sqrt", "pi", "e")

TEMPLATE = """
RATE = {0}
GRID = np.array([{1}, {2}, 1.5])
PAIR = ({3}, ({4}, 0.5))

def lowest(a, b={5}, *more):
    return {lowest}

def helper(u, v, w={6}):
    if {helper_test}:
        return {helper_one}
    return {helper_two}

def make(depth, shift, lib):
    def near(a, b):
        return {near}

    def gradient(client, x, scale={7}):
        total = {start}
        other = x - shift if x in {{0.7, 5.0}} else shift
        for i in range({loops}):
            total += {body}

        def nested(p, q={8}):
            return {nested}

        total, other = (total, other) if {swap_test} else (other, total)
        return {last}

    return gradient

gradient = make({9}, {10}, math)
"""


class Writer:
    """Random programs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self) -> str:
        return self.random.choice(["0.5", "1.0", "2.0", "-1.5", "3.0", "1", "2", "0.0", "-0.0", "True"])

    def test(self, names: list[str]) -> str:
        one, other = (self.expression(names, 1) for _ in range(2))
        operator = self.random.choice(["<", "<=", ">", "==", "!="])
        more = ["", f" < {self.number()}", f" or {one} > 1.0"]
        return f"{one} {operator} {other}" + self.random.choice(more)

    def expression(self, names: list[str], depth: int = 2, calls: tuple[str, ...] = ()) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.15:
            return self.random.choice([*names, *names, self.number(), *OUTSIDE])

        def inner() -> str:
            return self.expression(names, depth - 1, calls)

        if kind < 0.55:
            return f"({inner()} {self.random.choice('+-*')} {inner()})"
        if kind < 0.65:
            return f"({inner()} if {self.test(names)} else {inner()})"
        if kind < 0.8:
            module, function = self.random.choice(["math", "np"]), self.random.choice(["sin", "cos", "tanh"])
            return f"{module}.{function}({inner()})"
        if kind < 0.85 or not calls:
            return f"(-{inner()})"
        form = self.random.choice(calls)
        return form.format(inner(), inner())

    def program(self) -> str:
        low = ("lowest({}, {})", "lowest(b={}, a={})", "lowest({}, 1.0, {})")
        help_ = ("helper({}, {})", "helper(u={}, v={})", "helper({}, w={}, v=1.0)", *low)
        near = ("near({}, {})", "near(b={}, a={})", "lib.sin({}) + {}", "abs({}) - {}", "max({}, {})", *help_)
        inside = ["client", "x", "scale", "total", "depth", "shift", "other"]
        return TEMPLATE.format(
            *(self.number() for _ in range(11)), loops=self.random.choice("123"),
            lowest=self.expression(["a", "b", "len(more)"]), helper_test=self.test(["u", "v", "w"]),
            helper_one=self.expression(["u", "v", "w"], 2, low),
            helper_two=self.expression(["u", "v", "w"], 1),
            near=self.expression(["a", "b", "depth", "shift"], 2),
            start=self.expression(["client", "x", "scale"], 1, near),
            body=self.expression([*inside, "i"], 2, near),
            nested=self.expression(["p", "q", "total", "x"], 2, near),
            swap_test=self.test(inside), last=self.expression(
                ["nested(total)", "nested(q=total, p=x)", "nested(other, x)", "total", "x"], 2, near))


def _others(choice: random.Random, among: tuple, but: object) -> object:
    return choice.choice([one for one in among if one is not but])


class Change:
    """What a node of each kind may become."""

    def __init__(self, choice, names):
        self.choice, self.names = choice, names

    def of(self, node):
        """Another node in the place of this one, which stays as it is."""
        other = getattr(self, f"change_{type(node).__name__}")(node)
        return ast.fix_missing_locations(ast.copy_location(other, node))

    def change_Constant(self, node):
        return ast.Constant(_others(self.choice, NUMBERS, node.value))

    def change_Name(self, node):
        return ast.Name(_others(self.choice, tuple(self.names), node.id), node.ctx)

    def change_BinOp(self, node):
        if self.choice.random() < 0.4:
            return ast.BinOp(node.right, node.op, node.left)
        return ast.BinOp(node.left, _others(self.choice, OPERATORS, type(node.op))(), node.right)

    def change_AugAssign(self, node):
        return ast.AugAssign(node.target, _others(self.choice, OPERATORS, type(node.op))(), node.value)

    def change_UnaryOp(self, node):
        return node.operand if self.choice.random() < 0.5 else ast.UnaryOp(ast.Not(), node.operand)

    def change_Compare(self, node):
        if self.choice.random() < 0.3:
            return ast.Compare(node.left, [*node.ops, ast.Lt()], [*node.comparators, ast.Constant(1.0)])
        return ast.Compare(node.left, [self.choice.choice(COMPARISONS)(), *node.ops[1:]], node.comparators)

    def change_BoolOp(self, node):
        return ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)

    def change_IfExp(self, node):
        return ast.IfExp(node.test, node.orelse, node.body)

    def change_If(self, node):
        return ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)

    def change_Attribute(self, node):
        return ast.Attribute(node.value, _others(self.choice, FUNCTIONS, node.attr), node.ctx)

    def change_Call(self, node):
        if node.keywords and self.choice.random() < 0.7:  # names of arguments change places
            words = [one.arg for one in node.keywords]
            self.choice.shuffle(words)
            return ast.Call(node.func, node.args, [ast.keyword(word, one.value) for word, one in
                                                   zip(words, node.keywords, strict=True)])
        if not node.args:
            return node
        if self.choice.random() < 0.5:
            return node.args[0]
        return ast.Call(node.func, node.args[::-1], node.keywords)

    def change_keyword(self, node):
        return ast.keyword(self.choice.choice(["a", "b", "p", "q", "u", "v", "w"]), node.value)

    def change_arguments(self, node):
        """Another order of the parameters, or other defaults; or what is given by place alone."""
        changed, kind = copy.copy(node), self.choice.random()
        if kind < 0.6:
            changed.args = list(node.args)
            self.choice.shuffle(changed.args)
        elif kind < 0.8 and len(node.args) > 1:
            changed.posonlyargs, changed.args = node.args[:1], node.args[1:]
        else:
            changed.defaults = [ast.Constant(self.choice.choice(NUMBERS)) for _ in node.defaults]
        return changed

    def change_arg(self, node):
        return ast.arg(self.choice.choice(["a", "b", "u", "v", "w", "p", "q", "x", "total"]))

    def change_Tuple(self, node):
        return ast.Tuple(node.elts[::-1], node.ctx)

    def change_Set(self, node):
        return ast.Set([ast.Constant(self.choice.choice(NUMBERS)), *node.elts[1:]])

    def change_FunctionDef(self, node):
        changed = copy.copy(node)
        changed.body = node.body[1:] or node.body
        return changed

    def change_For(self, node):
        return ast.For(node.target, node.iter, [*node.body, *node.body], [])

    def change_Return(self, node):
        parts = [part for part in ast.iter_child_nodes(node.value) if isinstance(part, ast.expr)]
        return ast.Return(self.choice.choice(parts)) if parts else node


def made(tree, modules):
    """The program's gradient; None where it is none."""
    names = dict(modules)
    try:
        exec(compile(tree, "<pair>", "exec"), names)
    except (SyntaxError, *ERRORS):
        return None
    return names.get("gradient")


def bits(value):
    """The type and bits of a result; of what is no number the type alone."""
    kind = type(value).__name__
    if isinstance(value, complex):
        return kind, struct.pack("<dd", value.real, value.imag)
    if isinstance(value, float):
        return kind, struct.pack("<d", value)
    return (kind, repr(value)) if isinstance(value, (int, bool)) else (kind,)


def behaviour(function):
    """What Python says at one point after the other: results, or kinds of errors."""
    for client, x in POINTS:
        try:
            yield bits(function(client, x))
        except ERRORS as error:
            yield "raises", type(error).__name__


def places(tree):
    """(node, the list or fields that hold it, where in them) of every node that `Change` knows."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            holder, keys = (value, range(len(value))) if isinstance(value, list) else (vars(parent), [field])
            for key in keys:
                node = holder[key]
                if hasattr(Change, f"change_{type(node).__name__}"):
                    yield node, holder, key


def pairs(seed, modules, changes=30):
    """(function, changed function, source, its changed tree) for ever, where Python says something else."""
    for number in itertools.count(seed):
        writer = Writer(number)
        source = writer.program()
        tree = ast.parse(source)
        function = made(tree, modules)
        if function is None:
            continue
        names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - CALL_THEMSELVES)
        said, known, change = list(behaviour(function)), list(places(tree)), Change(writer.random, names)
        for node, holder, key in writer.random.sample(known, min(changes, len(known))):
            holder[key] = change.of(node)
            other = made(tree, modules)
            if other is not None and any(a != b for a, b in zip(said, behaviour(other), strict=True)):
                yield function, other, source, tree
            holder[key] = node
