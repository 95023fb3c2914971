"""The processor in place of a GPU, for tests: every phase runs, with the same index arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hilboost.engine.ops.cuda.blocks import THREADS, Kernel


class Processor:
    """Memory and kernels of a device that is the processor."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return memory of the device."""
        return np.empty(shape, dtype=dtype)

    def write(self, into: NDArray[Any], host: NDArray[Any]) -> None:
        """Copy an array of the same shape to the device."""
        into[...] = host

    def read(self, array: NDArray[Any], into: NDArray[Any]) -> None:
        """Copy an array from the device."""
        into[...] = array

    def launch(self, kernel: Kernel, n_blocks: int, work: Any) -> None:
        """Run a kernel."""
        shared = np.zeros(kernel.n_shared, dtype=np.uint32)
        for block in range(n_blocks):
            for phase in kernel.phases:
                _on_all_threads(phase)(block, shared, work)


@cache
def _on_all_threads(phase: Callable[..., None]) -> Callable[..., None]:
    """Compile a phase of all threads of a block, one after the other."""

    @numba.njit(error_model="numpy")
    def run(block: int, shared: NDArray[np.uint32], work: object) -> None:
        for thread in range(THREADS):
            phase(block, thread, shared, work)

    return run
