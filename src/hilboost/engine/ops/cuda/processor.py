"""The processor in place of a GPU, for tests: every phase runs, with the same index arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.engine.ops.cuda.blocks import Kernel


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
        kernel.run(n_blocks, np.zeros(kernel.n_shared, dtype=np.uint32), work)
