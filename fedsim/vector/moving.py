"""What in a user's gradient depends on the point: names whose values or shapes move, and blocks of code.

All else is the same at every point: who has tried it at one, for every client, has tried it at all. So a run
need not look again at a loop's counter, or at the client's number, where no condition on the point decides
whether they are used. Whatever is not understood moves. This file needs numba, so it is imported where
something is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numba.core import ir, types
from numba.core.analysis import compute_cfg_from_blocks

_OF_SHAPE = {"shape", "size", "ndim"}
_STEADY_MODULES = ("builtins", "math", "cmath", "operator", "numpy", "fedsim.vector")
"""Whose functions know their arguments alone; in `numpy.random` they do not."""
_VALUES = (bool, int, float, complex, str, bytes, tuple, type(None), type(...), np.ndarray, np.generic,
           np.ufunc)


class Moving:
    """Names that may depend on the arguments in places `seeds` of a function, and blocks that only some
    values of those reach: `values`, `shapes` (of arrays), `blocks`.

    `kind_of` tells the type of a name.
    """

    def __init__(self, blocks: Mapping[int, Any], kind_of: Callable[[str], Any], seeds: set[int]) -> None:
        self._code, self._kind_of, self._seeds = blocks, kind_of, seeds
        self.values: set[str] = set()
        self.shapes: set[str] = set()
        self.blocks: set[int] = set()
        self._behind = compute_cfg_from_blocks(blocks).post_dominators()
        known = -1
        while known != (known := len(self.values) + len(self.shapes) + len(self.blocks)):
            for label, block in blocks.items():
                for assign in block.find_insts(ir.Assign):
                    self._assign(label, assign.target.name, assign.value)
                self._leave(label, block.terminator)

    def _leave(self, label: int, end: Any) -> None:
        """A branch on what moves decides about all blocks that not every way on from it passes."""
        if isinstance(end, ir.Branch) and (label in self.blocks or end.cond.name in self.values):
            for following in (end.truebr, end.falsebr):
                passed = self._behind[following]
                self.blocks |= {other for other in passed if other == label
                                or other not in self._behind[label]}

    def _assign(self, label: int, name: str, value: Any) -> None:
        moves, bends = (True, True) if label in self.blocks else self._of(value)
        if moves:
            self.values.add(name)
        if bends:
            self.shapes.add(name)

    def _of(self, value: Any) -> tuple[bool, bool]:
        """Whether the value of what is assigned moves, and whether its shape does."""
        if isinstance(value, ir.Arg):
            return value.index in self._seeds, False
        if isinstance(value, ir.Const):
            return False, False
        if isinstance(value, (ir.Global, ir.FreeVar)):
            moves = not _is_steady(value.value)
            return moves, moves
        if isinstance(value, ir.Var):
            return value.name in self.values, value.name in self.shapes
        return self._of_expression(value) if isinstance(value, ir.Expr) else (True, True)

    def _of_expression(self, value: Any) -> tuple[bool, bool]:
        names = {var.name for var in value.list_vars()}
        bends = bool(names & self.shapes)
        if value.op == "getattr" and value.attr == "random":
            return True, True
        if (value.op == "getattr" and value.attr in _OF_SHAPE and self._is_array(value.value.name)) or (
                value.op == "call" and getattr(self._kind_of(value.func.name), "typing_key", None) is len):
            return bends, bends
        one_place = value.op == "getitem" and isinstance(self._kind_of(value.index.name), types.Integer)
        if one_place and self._is_array(value.value.name):  # which row it is does not decide how long it is
            bends = value.value.name in self.shapes
        else:
            bends |= any(not self._is_array(name) for name in names & self.values)
        return bool(names & (self.values | self.shapes)), bends

    def _is_array(self, name: str) -> bool:
        return isinstance(self._kind_of(name), types.Array)


def _is_steady(value: Any) -> bool:
    """True for values, and for functions that give the same for the same."""
    if isinstance(value, _VALUES):
        return True
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
    return not name.startswith("numpy.random") and any(
        name == known or name.startswith(f"{known}.") for known in _STEADY_MODULES)
