"""The sources as the tests of the layout read them: files, imports, and which room needs which."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("fedsim", "theory", "reproduce")


def sources(*packages):
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def shown(path):
    return path.relative_to(ROOT).as_posix()


def _typing_only(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements(tree, *, at_import=False):
    """All nodes, or only those executed when the module is imported."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) or _typing_only(node)
        if not (at_import and inside):
            todo.extend(ast.iter_child_nodes(node))


def imports(tree, module, is_package, *, at_import=False):
    """(line, absolute module, name or None) of every import."""
    for node in statements(tree, at_import=at_import):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, base, alias.name


def imports_of(path, **options):
    return list(imports(tree_of(path), name_of(path), path.name == "__init__.py", **options))


def violations(rule, *packages, **options):
    """file:line of imports that a rule (module, name) -> bool forbids."""
    return [f"{shown(path)}:{line} imports {module}" + (f".{name}" if name else "")
            for path in sources(*packages) for line, module, name in imports_of(path, **options)
            if rule(module, name)]


def top(module, name=None):
    return module.split(".")[0]


def executed(path):
    """Imports of a file that are executed some time: all but those for type checkers alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))  # a copy, as it is changed
    for node in ast.walk(tree):
        if _typing_only(node):
            node.body = [ast.Pass()]
    return imports(tree, name_of(path), path.name == "__init__.py")


def rooms(package):
    """{room: rooms of the same package that it imports}: folders, and the files beside them."""
    graph = {}
    for path in sources(package):
        room = [*name_of(path).split("."), ""][1]
        for _, module, name in executed(path):
            base, *inside = [*module.split("."), *([name] if name else [])]
            if room and base == package and inside and inside[0] != room:
                graph.setdefault(room, set()).add(inside[0])
    return graph
