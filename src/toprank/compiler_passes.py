"""How numba compiles the loops of the package: its usual passes, without those that such loops have no use for.

Half of what compiling takes is Python code that goes through each function once more. The loops have no closures, no
`with`, no strings, no functions to be inlined by hand and no array expressions to be fused; the passes that look for
these are left out. A loop that needs one of them does not compile, which its first test says.

Numba's own classes are taken apart for it, so this is used with the version that it was made for only, see
:mod:`toprank.compiled`.

A function that only loops call (`part` in :mod:`toprank.compiled`) needs no machine code of its own. Numba optimises it
and translates it once for itself, and again within each loop that calls it; here it is handed on as it is.
"""

from __future__ import annotations

from typing import Any

from numba._dynfunc import make_function
from numba.core import typed_passes as typed
from numba.core import untyped_passes as untyped
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.environment import lookup_environment

_NOT_NEEDED = {
    untyped.WithLifting,
    untyped.InlineClosureLikes,
    untyped.MakeFunctionToJitFunction,
    untyped.InlineInlinables,
    untyped.FindLiterallyCalls,
    untyped.LiteralUnroll,
    untyped.LiteralPropagationSubPipelinePass,
    typed.InlineOverloads,
    typed.NopythonRewrites,
    typed.DumpParforDiagnostics,
}


class LoopCompiler(CompilerBase):
    """Compiles a loop that Python calls."""

    def define_pipelines(self) -> list[PassManager]:
        """The passes, in order."""
        self.state.library = self._library()
        self.state.library.enable_object_caching()
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(step, says) for step, says in passes.passes if step not in _NOT_NEEDED]
        passes.finalize()
        return [passes]

    def _library(self) -> JITCodeLibrary:
        return _Loop(self.state.targetctx.codegen(), self.state.func_id.func_qualname)


class PartCompiler(LoopCompiler):
    """Compiles a part of loops, up to where a loop can take it in."""

    def define_pipelines(self) -> list[PassManager]:
        """The passes of a loop; instead of machine code it leaves a name by which loops find it."""
        self.state.flags.no_compile = True
        (passes,) = super().define_pipelines()
        passes.add_pass_after(Offer, typed.NativeLowering)
        passes.finalize()
        return [passes]

    def _library(self) -> JITCodeLibrary:
        return _Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)


class _Loop(JITCodeLibrary):
    """The code of a loop with its parts, which is optimised as a whole and not function by function before."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Make the code ready, and tell the parts within it their environments, as numba does for each function."""
        super().finalize()
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                self._codegen.set_env(variable.name, environment)


class _Part(_Loop):
    """The code of a part and of the parts that it calls, as it was written."""

    def finalize(self) -> None:
        """Take in what it calls."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)
class Offer(LoweringPass):
    """Lets loops find a part that has no machine code; the entry is a key, nobody calls it."""

    _name = "toprank_offer"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Register it."""
        lowered = state["cr"]
        entry = make_function(lowered.fndesc.lookup_module(), "part", "", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(entry, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True
