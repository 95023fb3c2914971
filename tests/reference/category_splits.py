"""Naive twins of :mod:`hilboost.engine.ops.cpu.category_splits`, in Python numbers."""


def level_goes_left(left_sets, number, value):
    code = int(value) if 0 <= value < 255 else 255
    return bool(int(left_sets[number][code // 64]) >> (code % 64) & 1)
