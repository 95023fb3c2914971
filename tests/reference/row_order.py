"""Naive twins of ``hilboost.engine.ops.cpu.row_order``."""


def arrange(values, offsets, begin, scratch):
    block = values[begin : begin + len(scratch)].copy()
    values[begin : begin + len(scratch)] = block[offsets[begin : begin + len(scratch)]]
