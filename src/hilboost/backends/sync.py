"""What threads inside one compiled call need: prefetch, atomics and a barrier.

A tree is grown by a fixed team of threads that all run the same compiled function and meet at
barriers (single program, multiple data).  A meeting costs well under a microsecond, where handing
a task to a Python thread costs about forty.
"""

import sys

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hilboost.backends.compiled import compiled

_COUNT, _GENERATION, ABORT = 0, 8, 16  # a cache line apart
SYNC_SIZE = 24
_SPINS_BEFORE_SLEEP = 8000
_SLEEP_MICROSECONDS = 20
_WINDOWS = sys.platform == "win32"


def _element_pointer(context, builder, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


@intrinsic
def keep_apart(typing_context):
    """Called in a function, keeps it from being inlined into its callers.

    The compiler optimizes an inlined function again in every caller, and a chain of callers
    multiplies the time of the first, cold fit.
    """

    def codegen(context, builder, sig, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def prefetch(typing_context, array, index):
    """Ask for the cache line of ``array[index]`` without waiting for it."""
    signature = types.void(array, types.intp)

    def codegen(context, builder, sig, args):
        pointer = _element_pointer(context, builder, sig.args[0], *args)
        int32, byte_pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [byte_pointer],
            ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32]),
        )
        builder.call(
            function, [builder.bitcast(pointer, byte_pointer), int32(0), int32(3), int32(1)]
        )
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _atomic_add(typing_context, array, index, value):
    """Add to ``array[index]`` and return what it held before."""
    signature = types.int64(array, types.intp, types.int64)

    def codegen(context, builder, sig, args):
        pointer = _element_pointer(context, builder, sig.args[0], args[0], args[1])
        return builder.atomic_rmw("add", pointer, args[2], "seq_cst")

    return signature, codegen


@intrinsic
def _sleep(typing_context):
    """Leave the core to others for a moment.

    A thread that spins, or yields on a core of its own, looks busy, and the system leaves the
    thread it waits for queued behind another program; one that sleeps makes room for it.
    """

    def codegen(context, builder, sig, args):
        int32 = ir.IntType(32)
        name, arguments = ("SwitchToThread", []) if _WINDOWS else ("usleep", [int32])
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(int32, arguments), name=name
        )
        return builder.call(function, [int32(_SLEEP_MICROSECONDS)] if arguments else [])

    return types.int32(), codegen


@compiled
def barrier(sync, n_threads):
    """Wait until all ``n_threads`` threads are here, or one has failed and set ``sync[ABORT]``.

    Parameters
    ----------
    sync : (SYNC_SIZE,) int64, zero before the first use
    n_threads : int
    """
    if n_threads == 1:
        return
    generation = _atomic_add(sync, _GENERATION, 0)
    if _atomic_add(sync, _COUNT, 1) + 1 == n_threads:
        _atomic_add(sync, _COUNT, -n_threads)
        _atomic_add(sync, _GENERATION, 1)
        return
    spins = 0
    while _atomic_add(sync, _GENERATION, 0) == generation and _atomic_add(sync, ABORT, 0) == 0:
        spins += 1
        if spins > _SPINS_BEFORE_SLEEP:
            _sleep()
