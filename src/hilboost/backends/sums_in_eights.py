"""Sums over arrays of float64 in an order that neither the processor nor the compiler changes.

Eight sums run side by side, which makes vector code.  Then halves of them are added, and at last
the terms that are left::

    t0   t1   t2   t3   t4   t5   t6   t7
    t8   t9   t10  t11  t12  t13  t14  t15       t16
    s0   s1   s2   s3   s4   s5   s6   s7        (((s0 + s4) + (s2 + s6)) + ...) + t16
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hilboost.backends.compiled import INTERPRETED
from hilboost.backends.intrinsics import element_pointer

_FOUR = ir.VectorType(ir.DoubleType(), 4)  # wider loads would wait for narrower stores


def _total_of_lanes(builder, lanes):
    """Add both halves of a vector until one number is left."""
    while lanes.type.count > 1:
        half = lanes.type.count // 2
        kind = ir.VectorType(ir.IntType(32), half)
        low, high = (ir.Constant(kind, [*range(at, at + half)]) for at in (0, half))
        first, second = (builder.shuffle_vector(lanes, lanes, places) for places in (low, high))
        lanes = builder.fadd(first, second)
    return builder.extract_element(lanes, ir.IntType(32)(0))


def _code_of_sums(context, builder, sig, args, terms):
    shape = context.make_array(sig.args[0])(context, builder, args[0]).shape
    n = builder.extract_value(shape, 0)
    whole = builder.and_(n, n.type(-8))

    def empty(value):
        return [cgutils.alloca_once_value(builder, value) for _ in sig.return_type]

    def add(sums, at):
        def element(array):
            place = element_pointer(context, builder, sig.args[array], args[array], at)
            return builder.load(builder.bitcast(place, sums[0].type), align=8)

        for total, term in zip(sums, terms(builder, element(0), element(1)), strict=True):
            builder.store(builder.fadd(builder.load(total), term), total)

    zeros = ir.Constant(_FOUR, [0.0] * 4)
    lower, upper = empty(zeros), empty(zeros)
    with cgutils.for_range_slice(builder, n.type(0), whole, n.type(8)) as (at, _):
        add(lower, at)
        add(upper, builder.add(at, n.type(4)))
    sums = []
    for low, high in zip(lower, upper, strict=True):
        lanes = builder.fadd(builder.load(low), builder.load(high))
        sums.append(cgutils.alloca_once_value(builder, _total_of_lanes(builder, lanes)))
    with cgutils.for_range_slice(builder, whole, n, n.type(1)) as (at, _):
        add(sums, at)
    return context.make_tuple(builder, sig.return_type, [builder.load(total) for total in sums])


class _NumPyBuilder:
    """The instructions of the terms below, in NumPy."""

    fmul, fsub, fneg, select = np.multiply, np.subtract, np.negative, np.where

    @staticmethod
    def fcmp_ordered(_, a, b):
        return a < b


def _sums_in_python(terms, a, b):
    found = []
    for values in terms(_NumPyBuilder, a, b):
        whole = len(values) // 8 * 8
        lanes = np.zeros(8)
        for row in values[:whole].reshape(-1, 8):
            lanes = lanes + row
        while len(lanes) > 1:
            lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
        found.append(sum(values[whole:].tolist(), float(lanes[0])))
    return tuple(found)


def _sums(n_sums, terms):
    """Sums of each of the terms over two contiguous arrays of equal length."""
    if INTERPRETED:
        return lambda a, b: _sums_in_python(terms, a, b)

    @intrinsic
    def sums(typing_context, a, b):
        def codegen(context, builder, sig, args):
            return _code_of_sums(context, builder, sig, args, terms)

        return types.UniTuple(types.float64, n_sums)(a, b), codegen

    return sums


def _dot(builder, a, b):
    return [builder.fmul(a, b)]


def _squares(builder, a, b):
    apart = builder.fsub(b, a)
    return builder.fmul(a, a), builder.fmul(apart, apart)


def _pairs(builder, a, b):
    opposite = builder.fneg(a)
    return a, builder.select(builder.fcmp_ordered("<", a, opposite), opposite, a), b


dot = _sums(1, _dot)
"""``Σ a b``, in a tuple."""

squares = _sums(2, _squares)
"""``|a|²`` and ``|b - a|²``."""

sums_of_pairs = _sums(3, _pairs)
"""``Σ a``, ``Σ |a|`` and ``Σ b``."""
