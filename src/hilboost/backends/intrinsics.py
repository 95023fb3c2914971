"""Instructions that neither Python nor NumPy has a word for, and what stands for them in Python.

Where nothing is compiled (``NUMBA_DISABLE_JIT=1``), each intrinsic is a Python function of the same
result.
"""

import platform
import sys
import threading
import time

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from hilboost.backends.compiled import INTERPRETED

_SLEEP_MICROSECONDS = 20
_WINDOWS = sys.platform == "win32"
_X86 = platform.machine() in ("x86_64", "AMD64")
_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine() if sys.platform == "linux" else "")
"""Number of the system call by which a thread sleeps until a word changes; ``None`` elsewhere."""
_WAIT, _WAKE = 128, 129  # among the threads of one process
_MOST_NANOSECONDS = 10_000_000
_MONOTONIC = 6 if sys.platform == "darwin" else 1
_NANOSECONDS_OF_A_TICK = 100  # of the clock of Windows


def _has_avx512() -> bool:
    """Whether code is compiled for a processor with AVX-512."""
    if INTERPRETED or not _X86 or not config.ENABLE_AVX:
        return False
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return (config.CPU_NAME, config.CPU_FEATURES) == ("x86-64-v4", "")
    features = binding.get_host_cpu_features()
    return bool(features.get("avx512f") and features.get("avx512vl"))


HAS_AVX512 = _has_avx512()
"""Whether :func:`compress_eight` and gathers of eight values may be called."""


def declared(builder, name, result, arguments):
    """The function of a name, declared once in a module."""
    kind = ir.FunctionType(result, arguments)
    return builder.module.globals.get(name) or ir.Function(builder.module, kind, name=name)


def element_pointer(context, builder, array_type, array, index):
    """Pointer to an element of an array, in code that is compiled."""
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
def keep_inside(typing_context):
    """Called in a function, makes it a part of its callers, which pass it no arguments then.

    Where a short function takes records of arrays, copying these takes longer than its work.
    """

    def codegen(context, builder, sig, args):
        builder.function.attributes.add("alwaysinline")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def prefetch(typing_context, array, index):
    """Ask for the cache line of ``array[index]`` without waiting for it."""
    signature = types.void(array, types.intp)

    def codegen(context, builder, sig, args):
        pointer = element_pointer(context, builder, sig.args[0], *args)
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
def atomic_add(typing_context, array, index, value):
    """Add to ``array[index]`` and return what it held before."""
    signature = types.int64(array, types.intp, types.int64)

    def codegen(context, builder, sig, args):
        pointer = element_pointer(context, builder, sig.args[0], args[0], args[1])
        return builder.atomic_rmw("add", pointer, args[2], "seq_cst")

    return signature, codegen


@intrinsic
def atomic_load(typing_context, array, index):
    """``array[index]``, which another thread may write meanwhile."""
    signature = types.int64(array, types.intp)

    def codegen(context, builder, sig, args):
        pointer = element_pointer(context, builder, sig.args[0], *args)
        return builder.load_atomic(pointer, "seq_cst", 8)

    return signature, codegen


@intrinsic
def atomic_store(typing_context, array, index, value):
    """Write ``array[index]``, which other threads may read or add to meanwhile."""
    signature = types.void(array, types.intp, types.int64)

    def codegen(context, builder, sig, args):
        pointer = element_pointer(context, builder, sig.args[0], args[0], args[1])
        builder.atomic_rmw("xchg", pointer, args[2], "seq_cst")
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def sleep_while(typing_context, array, index, value):
    """Leave the core to others while ``array[index]`` is ``value``, or for some time at most.

    A thread that spins, or yields on a core of its own, looks busy, and the system leaves the
    thread it waits for queued behind another program; one that sleeps makes room for it.
    """
    signature = types.void(array, types.intp, types.int64)

    def codegen(context, builder, sig, args):
        if _FUTEX is None:
            _sleep_a_moment(builder)
            return context.get_dummy_value()
        int64 = ir.IntType(64)
        limit = cgutils.alloca_once(builder, ir.ArrayType(int64, 2))  # seconds, nanoseconds
        builder.store(ir.Constant(limit.type.pointee, [0, _MOST_NANOSECONDS]), limit)
        _futex(context, builder, sig.args[0], args[:2], _WAIT, args[2], limit)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def wake(typing_context, array, index, n_threads):
    """Wake threads that :func:`sleep_while` made sleep at ``array[index]``."""
    signature = types.void(array, types.intp, types.int64)

    def codegen(context, builder, sig, args):
        if _FUTEX is not None:
            nothing = ir.Constant(ir.IntType(8).as_pointer(), None)
            _futex(context, builder, sig.args[0], args[:2], _WAKE, args[2], nothing)
        return context.get_dummy_value()

    return signature, codegen


def _futex(context, builder, kind, place, operation, value, limit):
    """Call the system for the lower half of an entry of an array."""
    int64, int32 = ir.IntType(64), ir.IntType(32)
    call = builder.module.globals.get("syscall") or ir.Function(
        builder.module, ir.FunctionType(int64, [int64], var_arg=True), name="syscall"
    )
    word = builder.bitcast(element_pointer(context, builder, kind, *place), int32.as_pointer())
    value = builder.trunc(value, int32)
    builder.call(call, [int64(_FUTEX), word, int32(operation), value, limit])


def _sleep_a_moment(builder):
    int32 = ir.IntType(32)
    name, arguments = ("SwitchToThread", []) if _WINDOWS else ("usleep", [int32])
    function = declared(builder, name, int32, arguments)
    builder.call(function, [int32(_SLEEP_MICROSECONDS)] if arguments else [])


@intrinsic
def add_pair(typing_context, array, index, first, second):
    """Add to ``array[index]`` and ``array[index + 1]``, int64, by one vector instruction."""
    signature = types.void(array, types.uint64, types.int64, types.int64)

    def codegen(context, builder, sig, args):
        array, index, *values = args
        int64, int32 = ir.IntType(64), ir.IntType(32)
        pair = ir.Constant(ir.VectorType(int64, 2), ir.Undefined)
        for k, value in enumerate(values):
            pair = builder.insert_element(pair, value, int32(k))
        pointer = element_pointer(context, builder, sig.args[0], array, index)
        place = builder.bitcast(pointer, pair.type.as_pointer())
        builder.store(builder.add(builder.load(place, align=8), pair), place, align=8)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def flag_bits(typing_context, flags, index):
    """Bit k says whether ``flags[index + k]``, uint8, is not zero: eight flags as one uint8."""
    signature = types.uint8(flags, types.uint64)

    def codegen(context, builder, sig, args):
        eight = ir.VectorType(ir.IntType(8), 8)
        pointer = element_pointer(context, builder, sig.args[0], *args)
        values = builder.load(builder.bitcast(pointer, eight.as_pointer()), align=1)
        is_set = builder.icmp_unsigned("!=", values, ir.Constant(eight, [0] * 8))
        return builder.bitcast(is_set, ir.IntType(8))

    return signature, codegen


@intrinsic
def compress_eight(typing_context, source, index, bits, target, place):
    """Write the entries of ``source[index : index + 8]`` with set bits to ``target[place:]``.

    bits : uint8; the arrays have elements of 32 or 64 bits.  Returns how many there are, uint64.
    """
    signature = types.uint64(source, types.uint64, types.uint8, target, types.uint64)

    def codegen(context, builder, sig, args):
        source, index, bits, target, place = args
        int64, width = ir.IntType(64), sig.args[0].dtype.bitwidth
        count = builder.zext(builder.ctpop(bits), int64)
        if not HAS_AVX512:
            return count  # never called
        eight, mask = ir.VectorType(ir.IntType(width), 8), ir.VectorType(ir.IntType(1), 8)

        def at(kind, array, first):
            pointer = element_pointer(context, builder, kind, array, first)
            return builder.bitcast(pointer, eight.as_pointer())

        values = builder.load(at(sig.args[0], source, index), align=width // 8)
        name = f"llvm.x86.avx512.mask.compress.v8i{width}"
        compress = declared(builder, name, eight, [eight, eight, mask])
        chosen = [values, ir.Constant(eight, ir.Undefined), builder.bitcast(bits, mask)]
        one = int64(1)
        first_ones = builder.trunc(builder.sub(builder.shl(one, count), one), ir.IntType(8))
        pointer = at(sig.args[3], target, place)
        name = f"llvm.masked.store.v8i{width}.p0v8i{width}"
        kinds = [eight, pointer.type, ir.IntType(32), mask]
        store = declared(builder, name, ir.VoidType(), kinds)
        alignment, written = ir.IntType(32)(width // 8), builder.bitcast(first_ones, mask)
        builder.call(store, [builder.call(compress, chosen), pointer, alignment, written])
        return count

    return signature, codegen


@intrinsic
def pause(typing_context):
    """Tell the processor that a loop waits, so that it leaves a shared core to another thread."""

    def codegen(context, builder, sig, args):
        if _X86:
            builder.call(declared(builder, "llvm.x86.sse2.pause", ir.VoidType(), []), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def nanoseconds(typing_context):
    """Time of a clock that runs forward at an even pace."""

    def codegen(context, builder, sig, args):
        int64, int32 = ir.IntType(64), ir.IntType(32)
        now = cgutils.alloca_once(builder, ir.ArrayType(int64, 2))
        if _WINDOWS:
            builder.call(declared(builder, "QueryPerformanceCounter", int32, [now.type]), [now])
            ticks = builder.load(cgutils.gep_inbounds(builder, now, 0, 0))
            return builder.mul(ticks, int64(_NANOSECONDS_OF_A_TICK))
        clock = declared(builder, "clock_gettime", int32, [int32, now.type])
        builder.call(clock, [int32(_MONOTONIC), now])
        seconds, rest = (builder.load(cgutils.gep_inbounds(builder, now, 0, k)) for k in range(2))
        return builder.add(builder.mul(seconds, int64(10**9)), rest)

    return types.int64(), codegen


@intrinsic
def lowest_bit(typing_context, value):
    """Number of the lowest set bit of a uint64 that is not zero."""
    signature = types.int64(types.uint64)

    def codegen(context, builder, sig, args):
        int64, int1 = ir.IntType(64), ir.IntType(1)
        function = builder.module.declare_intrinsic(
            "llvm.cttz", [int64], ir.FunctionType(int64, [int64, int1])
        )
        return builder.call(function, [args[0], int1(1)])

    return signature, codegen


@intrinsic
def float_bits(typing_context, value):
    """The bits of a float64, as an int64."""
    signature = types.int64(types.float64)

    def codegen(context, builder, sig, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return signature, codegen


@intrinsic
def float_of_bits(typing_context, value):
    """The float64 of some bits, an int64."""
    signature = types.float64(types.int64)

    def codegen(context, builder, sig, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return signature, codegen


_lock = threading.Lock()


def _nothing(*arguments):
    """Hints to the compiler and the processor mean nothing in Python."""


def _add_in_turn(array, index, value):
    with _lock:
        before = int(array[index])
        array[index] = before + value
        return before


def _add_both(array, index, first, second):
    array[index] += first
    array[index + np.uint64(1)] += second


def _load_in_python(array, index):
    return int(array[index])


def _store_in_turn(array, index, value):
    with _lock:
        array[index] = value


def _sleep_in_python(array, index, value):
    time.sleep(1e-6 * _SLEEP_MICROSECONDS)


def _lowest_bit_in_python(value):
    value = int(value)
    return (value & -value).bit_length() - 1


def _bits_in_python(value):
    return np.float64(value).view(np.int64)


def _float_in_python(value):
    return np.int64(value).view(np.float64)


if INTERPRETED:
    keep_apart = keep_inside = prefetch = pause = wake = _nothing
    atomic_add, atomic_load, atomic_store = _add_in_turn, _load_in_python, _store_in_turn
    sleep_while, lowest_bit = _sleep_in_python, _lowest_bit_in_python
    nanoseconds = time.perf_counter_ns
    float_bits, add_pair = _bits_in_python, _add_both
    float_of_bits = _float_in_python
