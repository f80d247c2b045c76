"""How kernels are compiled, and the functions that only compiled code calls: once, with the kernel.

numba makes machine code of every function, and optimises it again in each function that calls it, directly or
not. Nobody runs that of an inner function: here it becomes LLVM code, which is linked into its callers. The
loops over a row, which call no other function, are optimised by themselves, because there they vectorise; all
others with their kernel. This file needs numba, so it is imported where something is compiled.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import Any, ClassVar

from numba._dynfunc import make_function
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import MakeFunctionToJitFunction
from tqdm.auto import tqdm

from .compile import checked
from .guards import GradientLower, StrictLower
from .kept import Turn


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """LLVM code that is linked into its callers and never run by itself."""

    def add_llvm_module(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        self._final_module.link_in(module)

    def finalize(self) -> None:
        if not self._linking_libraries:
            self._optimize_final_module()
        self._finalize_dynamic_globals()
        self._finalized = True


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Machine code of a kernel, with all that it calls, directly or not."""

    def add_linking_library(self, library: Any) -> None:
        super().add_linking_library(library)
        if isinstance(library, _Library):
            for called in library._linking_libraries:
                if called not in self._linking_libraries:
                    self.add_linking_library(called)


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(NativeLowering):  # type: ignore[misc]
    """From typed code to a `_Library`."""

    _name = "inner_lowering"
    inline = False

    def run_pass(self, state: Any) -> bool:
        name = state.func_id.func_qualname
        library = state.library = _Library(state.targetctx.codegen(), name)
        state.flags.no_compile = True
        # not an option of the function, which those that it calls would inherit, and be compiled again
        state.flags.forceinline = self.inline
        super().run_pass(state)
        library._ensure_finalized()
        # without an address, like all that Python does not call
        entry = make_function(state.func_id.module, name, "", 0, state.cr.env, (library,))
        state.targetctx.insert_user_function(entry, state.cr.fndesc, [library])
        state.cr = state.cr._replace(cfunc=entry)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(NativeLowering):  # type: ignore[misc]
    """From typed code to a `_KernelLibrary`."""

    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _CheckedClosures(MakeFunctionToJitFunction):  # type: ignore[misc]
    """Functions written inside a gradient and handed to another are checked too."""

    _name = "checked_closures"

    def run_pass(self, state: Any) -> bool:
        made = [step for block in state.func_ir.blocks.values() for step in block.find_insts(ir.Assign)
                if getattr(step.value, "op", "") == "make_function"]
        changed = bool(super().run_pass(state))
        for step in made:
            if isinstance(step.value, ir.Global):
                function = step.value.value.py_func
                function.__module__ = __name__  # the compiler looks for one
                step.value.value = checked(function)._get()
        return changed


class InnerCompiler(CompilerBase):  # type: ignore[misc]
    """numba's compiler with that last step."""

    lowering: Any = _InnerLowering
    closures: Any = MakeFunctionToJitFunction

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        own = {NativeLowering: self.lowering, MakeFunctionToJitFunction: self.closures}
        pipeline.passes = [(own.get(step, step), why) for step, why in pipeline.passes]
        pipeline.finalize()
        return [pipeline]


def _inlining(name: str, lower: type = Lower, closures: Any = MakeFunctionToJitFunction) -> Any:
    """The same for what is always inlined; `lower` may check what it does."""
    lowering = type(f"_{name}Lowering", (_InnerLowering,), {
        "_name": f"{name.lower()}_lowering", "inline": True, "lowering_class": lower})
    return type(f"{name}Compiler", (InnerCompiler,), {
        "lowering": register_pass(mutates_CFG=True, analysis_only=False)(lowering), "closures": closures})


InlinedCompiler = _inlining("Inlined")
StrictCompiler = _inlining("Strict", StrictLower, _CheckedClosures)
"""With every index and integer checked."""
GradientCompiler = _inlining("Gradient", GradientLower, _CheckedClosures)
"""With those checked that depend on the point of a gradient (client, x, [out,] ...)."""


class KernelCompiler(InnerCompiler):
    """The same for what Python calls; it says that it is at work."""

    lowering = _KernelLowering
    made: ClassVar[list[tuple[str, float]]] = []
    """Kernels that this process has compiled rather than read from the disk cache, and their CPU seconds."""

    def compile_extra(self, function: Any) -> Any:
        """As numba's; it is told on standard error, above progress bars."""
        classes = [getattr(kind, "instance_class", None) for kind in self.state.args[:2]]
        what = ", ".join([function.__name__, *(cls.__name__ for cls in classes if cls)])
        tqdm.write(f"fedsim: compiling {what} (once)", file=sys.stderr)
        began, collecting = time.thread_time(), gc.isenabled()
        gc.disable()  # millions of objects come and nearly all stay: an eighth of the time
        try:
            return super().compile_extra(function)
        except BaseException:
            Turn.leave()
            raise
        finally:
            KernelCompiler.made.append((what, time.thread_time() - began))
            if collecting:
                gc.enable()
