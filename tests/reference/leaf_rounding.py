"""Naive twins of :mod:`hilboost.engine.ops.cpu.leaf_rounding`."""

import numpy as np


def unit_of_outputs(packing, total, fewest_rows):
    counts_rows = packing.count_step == 1 and packing.hessian_step == 0
    is_large = total & packing.count_mask >= fewest_rows
    return 2 * packing.gradient_step if counts_rows and is_large else 0.0


def steps_of_totals(packing, leaves, totals, l2, unit, values):
    if unit == 0:
        return False
    bottom = (totals[leaves] & packing.count_mask) + l2
    top = (totals[leaves] >> packing.gradient_shift) * packing.gradient_step
    values[:] = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
    return bool(np.median(np.abs(values)) >= 2048 * unit)


def round_values(unit, rate, values, multiples):
    if unit == 0:
        return False
    multiples[:] = np.rint(rate * values[:, 0] / unit)
    if np.median(np.abs(multiples)) < 128:
        return False
    values[:, 0] = multiples * unit / rate
    return True
