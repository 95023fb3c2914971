"""Naive twin of :mod:`hilboost.engine.ops.cpu.one_by_one`."""

from tests.reference.separate_trees import grow_separate_trees

from hilboost.engine.ops.cpu.stage_series import ONE_STAGE


def grow_one_by_one(threads, series, stage, memory, grown, leaf_of_row):
    """Squared error from all rows; losses are not written."""
    r, n = leaf_of_row.shape
    raw = series.raw.reshape(r, n)
    if threads.number > 0:
        return
    for number in range(series.n_stages):
        stage.learned.gradients[..., 0] = series.y - raw
        here = slice(number * r, (number + 1) * r)
        trees, *others = grown
        trees = type(trees)(*(array[here] for array in trees))
        one = type(grown)(trees, *(array[here] for array in others))
        draws = type(stage.draws)(*(array[here] for array in stage.draws))
        own = threads, ONE_STAGE, stage._replace(draws=draws), memory, one, leaf_of_row
        grow_separate_trees(*own)
        for k in range(r):
            raw[k] += series.rate * one.values[k, leaf_of_row[k], 0]
