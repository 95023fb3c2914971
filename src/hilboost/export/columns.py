"""Names and levels of the input columns of a model's trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.core.learner import splits_of
from hilboost.engine import MAX_LEVELS, Tree
from hilboost.model.fitted import FittedModel


@dataclass(frozen=True)
class Columns:
    """The input columns of a model's trees."""

    # numbers if ``X`` had no names.  The columns of ``X`` are followed by columns of the target
    # encoding, for each member of an ensemble: ``"mean by town"``, ``"mean by town × street"``, and
    # ``"mean 2 by town"`` if there are several targets or classes (for more than five classes, the
    # five most frequent in their order).  ``"share of town"`` is the frequency of the level, which
    # replaces a column with many levels.
    names: list[Any]
    # for columns with splits on levels, the levels represented by each code
    levels: dict[int, Sequence[tuple[Any, ...]]]

    @classmethod
    def of(cls, fitted: FittedModel) -> Self:
        """Create them from the record of a fit."""
        names: list[Any] = [column.name for column in fitted.schema.columns]
        levels: dict[int, Sequence[tuple[Any, ...]]] = {}
        for splits in splits_of(fitted.learner):
            levels |= {k: [(code,) for code in range(n)] for k, n in splits.categorical}
        levels |= {k: [(level,) for level in found] for k, found in fitted.schema.levels}
        encoding = fitted.encoding
        if encoding is None:
            return cls(names, levels)
        own = [named(name) for name in names]
        for column, new in encoding.kept:
            codes = range(int(new.max()) + 1)
            known = dict(fitted.schema.levels)[column]
            levels[column] = [tuple(known[k] for k in np.flatnonzero(new == c)) for c in codes]
        for column, _ in encoding.shares:
            names[column] = f"share of {own[column]}"
        for statistics in encoding.statistics:
            n_targets = len(statistics.prior)
            for source in statistics.sources:
                by = "by " + " × ".join(own[column] for column in source.columns)
                numbered = [f"mean {k} {by}" for k in range(n_targets)]
                names += numbered if n_targets > 1 else [f"mean {by}"]
        return cls(names, levels)

    def left_levels(self, tree: Tree, node: int) -> tuple[tuple[Any, ...], bool]:
        """Return the levels that a split sends left, and whether unknown levels go left too.

        For the ``categorical`` columns of a learner, the levels are codes.
        """
        groups = self.levels[int(tree.column[node])]
        goes_left, unseen = left_codes(tree, node, len(groups))
        levels = tuple(level for k in np.flatnonzero(goes_left).tolist() for level in groups[k])
        return levels, unseen


def left_codes(tree: Tree, node: int, n_codes: int) -> tuple[NDArray[np.bool_], bool]:
    """Return the codes that a split on levels sends left, (n_codes,), and whether others do."""
    words = tree.left_sets[int(tree.by_level[:node].sum())]
    bits = np.arange(MAX_LEVELS + 1, dtype=np.uint64)
    goes_left = (words[bits // 64] >> (bits % 64)) & np.uint64(1) == 1
    return goes_left[:n_codes], bool(goes_left[MAX_LEVELS])


def named(name: str | int) -> str:
    """Return a readable name, such as ``x3`` for a column without a name."""
    return f"x{name}" if isinstance(name, int) else name
