"""Tables of paired tests over splits, for the pages of the reproductions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hilboost.testing import paired_test

HEADER = ["difference", "mean", "t-test", "corrected t-test", "Wilcoxon", "splits"]


def paired_rows(
    pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]], test_to_train: float | None
) -> list[list[str]]:
    """A row for each pair of error lists: mean difference, p-values, number of splits.

    ``test_to_train`` is the number of test rows per training row if splits share rows, else None.
    """
    rows = []
    for title, (first, second) in pairs.items():
        if len(first) < 2:
            continue
        t = paired_test(first, second)
        corrected = "–"
        if test_to_train is not None:
            found = paired_test(first, second, "corrected_t", test_to_train=test_to_train)
            corrected = _p_value(found.p_value)
        ranks = paired_test(first, second, "wilcoxon")
        p_values = [_p_value(t.p_value), corrected, _p_value(ranks.p_value)]
        rows.append([title, f"{t.mean_difference:.3g}", *p_values, str(t.n)])
    return rows


def paired_table(text: str, rows: list[list[str]]) -> dict[str, Any]:
    """A table for a page; ``text`` says what the paper reports."""
    return {
        "title": "Paired tests",
        "text": f"{text} The columns of tests have two-sided p-values. The corrected resampled "
        "t-test takes into account that splits share rows.",
        "header": HEADER,
        "rows": rows,
    }


def _p_value(p: float) -> str:
    return f"{p:.1e}" if p < 0.001 else f"{p:.3f}"
