"""Memory and kernels of a GPU, by numba-cuda.

A phase is compiled for the GPU from the same Python function as for the processor, and so is every
function that it calls; what a GPU has instructions of its own for is replaced.
"""

from __future__ import annotations

from functools import cache
from re import fullmatch
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.types import uint32
from numpy.typing import NDArray

from hilboost.backends.intrinsics import float_bits
from hilboost.core.errors import InvalidParameter
from hilboost.core.packages import required
from hilboost.engine.ops.cuda import blocks
from hilboost.engine.ops.cuda.blocks import THREADS, Kernel


class Gpu:
    """Memory and kernels of a GPU."""

    def __init__(self, cuda: Any, number: int) -> None:
        self._cuda, self._number = cuda, number
        self._kernels: dict[int, Any] = {}

    @classmethod
    def of(cls, device: str) -> Gpu:
        """Return the GPU that is named ``"cuda"`` or ``"cuda:1"``."""
        named = fullmatch(r"cuda(?::(\d+))?", device)
        if named is None:
            raise InvalidParameter(
                f"device={device!r} is not supported by trees; use 'cuda', 'cuda:1' or None."
            )
        required("numba_cuda", f"device={device!r}")
        from numba import cuda
        from numba.cuda import dispatcher

        # Numba warns of few blocks, which suffice for small nodes.
        dispatcher.config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        number = int(named[1] or 0)
        if not cuda.is_available() or number >= len(cuda.gpus):
            raise InvalidParameter(
                f"device={device!r} is not available, because no such GPU or no driver for it was "
                "found; use another device, or set device=None."
            )
        return cls(cuda, number)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return memory of the GPU."""
        with self._cuda.gpus[self._number]:
            return self._cuda.device_array(shape, dtype)

    def write(self, into: Any, host: NDArray[Any]) -> None:
        """Copy an array of the same shape to the GPU."""
        if host.size:
            with self._cuda.gpus[self._number]:
                into.copy_to_device(np.ascontiguousarray(host))

    def read(self, array: Any, into: NDArray[Any]) -> None:
        """Copy an array from the GPU."""
        with self._cuda.gpus[self._number]:
            array.copy_to_host(into)

    def launch(self, kernel: Kernel, n_blocks: int, work: Any) -> None:
        """Start a kernel; copies from the GPU wait for it."""
        if n_blocks > 0:
            with self._cuda.gpus[self._number]:
                _compiled(kernel)[n_blocks, THREADS](work)


@cache
def _compiled(kernel: Kernel) -> Any:
    """Return the kernel, which is compiled when it is first started."""
    from numba import cuda

    phases, n_shared = [_on_gpu(phase) for phase in kernel.phases], kernel.n_shared
    # Phases beyond the last one do nothing.
    first, second, third, fourth = [*phases, *[_nothing()] * (4 - len(phases))]

    def run(work: Any) -> None:
        shared = cuda.shared.array(n_shared, uint32)
        block, thread = np.int64(cuda.blockIdx.x), np.int64(cuda.threadIdx.x)
        first(block, thread, shared, work)
        cuda.syncthreads()
        second(block, thread, shared, work)
        cuda.syncthreads()
        third(block, thread, shared, work)
        cuda.syncthreads()
        fourth(block, thread, shared, work)

    return cuda.jit(run)


@cache
def _on_gpu(function: Any) -> Any:
    """Return a compiled function for the GPU, with all that it calls."""
    from numba import cuda

    if function in _instructions():
        return _instructions()[function]
    python = function.py_func
    known = python.__globals__
    called = {
        name: _on_gpu(known[name])
        for name in python.__code__.co_names
        if name in known and _is_compiled(known[name])
    }
    code = FunctionType(python.__code__, known | called, python.__name__, python.__defaults__)
    return cuda.jit(device=True)(code)


def _is_compiled(found: Any) -> bool:
    return getattr(found, "py_func", None) is not None or found in _instructions()


@cache
def _instructions() -> dict[Any, Any]:
    """Instructions of a GPU: atomic additions, and products that are rounded.

    Elsewhere, the compiler may round a product and a sum together, which changes bits.
    """
    from numba import cuda
    from numba.cuda import libdevice

    @cuda.jit(device=True)
    def add_to(array: Any, place: Any, number: Any) -> Any:
        return cuda.atomic.add(array, place, number)

    @cuda.jit(device=True)
    def raise_to(array: Any, place: Any, number: Any) -> None:
        cuda.atomic.max(array, place, number)

    return {
        blocks.add_to: add_to,
        blocks.raise_to: raise_to,
        blocks.nearest: libdevice.rint,
        blocks.integer_below: libdevice.floor,
        blocks.product: libdevice.dmul_rn,
        float_bits: libdevice.double_as_longlong,
    }


@cache
def _nothing() -> Any:
    from numba import cuda

    @cuda.jit(device=True)
    def nothing(block: Any, thread: Any, shared: Any, work: Any) -> None:
        pass

    return nothing
