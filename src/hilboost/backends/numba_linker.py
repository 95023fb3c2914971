"""Parts of compiled functions: linked into the functions that Python calls, and never run alone.

Numba optimizes every function together with all functions that it calls, and translates them to
machine code.  In a chain of calls, the last function would be optimized and translated once for
every function of the chain.  A part is neither::

    grow  ->  decide_step  ->  search_columns  ->  scan
    entry     part             part                part
    `--------------- optimized and translated once ---'
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder


class _NoEnvironments:
    """Takes the place of a code generator; a part is not run, so it has no Python environment."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing."""


class PartLibrary(JITCodeLibrary):
    """The code of a part and of the parts that it calls."""

    @classmethod
    def of_bitcode(cls, codegen: Any, name: str, bitcode: bytes) -> PartLibrary:
        """Return a part that was saved."""
        library = cls(codegen, name)
        library._final_module = binding.parse_bitcode(bitcode)
        library._finalize_final_module()
        return library

    @property
    def codegen(self) -> _NoEnvironments:
        """Nothing that could run the part."""
        return _NoEnvironments()

    def _optimize_final_module(self) -> None:
        """Leave this to the functions that call the part."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No function can be called."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        """Return the name and the bitcode."""
        return self.name, self._get_module_for_linking().as_bitcode()


class PartCompiler(CompilerBase):
    """Compiles a part."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's usual pipeline, which writes to the library of a part."""
        state = self.state
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return [DefaultPassBuilder.define_nopython_pipeline(state)]
