"""Paired tests: whether one method has smaller errors than another on the same splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.stats

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, shown, unknown_name
from hilboost.core.plain_values import as_floats

_TESTS = ("t", "corrected_t", "wilcoxon")


@dataclass(frozen=True)
class PairedTest:
    """Result of a paired two-sided test.

    Attributes
    ----------
    test : str
    statistic : float
        Student's t, or the smaller rank sum of the Wilcoxon test.
    p_value : float
    mean_difference : float
        Mean of ``first - second``.
    n : int
        Number of pairs.
    """

    test: str
    statistic: float
    p_value: float
    mean_difference: float
    n: int


def paired_test(
    first: object, second: object, test: str = "t", *, test_to_train: float | None = None
) -> PairedTest:
    """Test whether the errors of two methods on the same splits have the same mean.

    Parameters
    ----------
    first, second : array-like (n,)
        Errors of the methods; entry ``i`` of both is of split ``i``.
    test : {"t", "corrected_t", "wilcoxon"}, default="t"
        - ``"t"``: paired t-test (SY2006, section 4; G2007, footnote 4).  It assumes independent
          splits.  If splits share rows, its p-values are too small.
        - ``"corrected_t"``: corrected resampled t-test for splits that share rows.  The variance
          of the mean is ``(1/n + test_to_train) s²`` instead of ``s²/n``.
        - ``"wilcoxon"``: signed-rank test.  Pairs with equal errors are omitted.
    test_to_train : float, optional
        Number of test rows per training row, required by ``"corrected_t"``: 1/9 for splits of
        90 % and 10 %.

    Returns
    -------
    PairedTest

    Raises
    ------
    InvalidData
        There are fewer than two pairs, the lengths differ, or an error is missing or infinite.
    InvalidParameter
        The test is unknown, or ``test_to_train`` is missing, not positive, or not used.

    Notes
    -----
    If all differences are equal, a t-test has the p-value 1 for zeros, and 0 otherwise.

    References
    ----------
    C. Nadeau, Y. Bengio, *Inference for the generalization error*, Machine Learning 52, 2003.

    Examples
    --------
    >>> from hilboost.testing import paired_test
    >>> single = [0.048, 0.046, 0.045, 0.046, 0.046]
    >>> boosted = [0.028, 0.023, 0.024, 0.024, 0.027]
    >>> bool(paired_test(single, boosted, "corrected_t", test_to_train=1 / 9).p_value < 0.001)
    True
    """
    if test not in _TESTS:
        raise unknown_name("test", str(test), _TESTS)
    if (test == "corrected_t") != (test_to_train is not None):
        raise InvalidParameter(
            "test='corrected_t' requires test_to_train, the number of test rows per training row; "
            f"the other tests do not use it; got test={test!r} and test_to_train={test_to_train!r}."
        )
    if test_to_train is not None and not (np.isfinite(test_to_train) and test_to_train > 0):
        raise InvalidParameter(
            f"test_to_train must be a positive number; got {shown(test_to_train)}."
        )
    a, b = _errors(first, "first"), _errors(second, "second")
    if len(a) != len(b) or len(a) < 2:
        raise InvalidData(
            f"first and second must have the same length, at least 2; got {len(a)} and {len(b)}."
        )
    difference = a - b
    if test == "wilcoxon":
        statistic, p_value = _signed_ranks(difference)
    else:
        statistic, p_value = _student(difference, 1 / len(a) + (test_to_train or 0.0))
    return PairedTest(test, statistic, p_value, float(difference.mean()), len(a))


def _student(difference: Floats, factor: float) -> tuple[float, float]:
    """Statistic and p-value; ``factor s²`` is the variance of the mean difference."""
    mean, variance = float(difference.mean()), float(difference.var(ddof=1))
    if np.ptp(difference) == 0:
        return (0.0, 1.0) if mean == 0 else (float(np.copysign(np.inf, mean)), 0.0)
    t = mean / float(np.sqrt(factor * variance))
    return t, float(2 * scipy.stats.t.sf(abs(t), len(difference) - 1))


def _signed_ranks(difference: Floats) -> tuple[float, float]:
    different = difference[difference != 0]
    if not len(different):
        return 0.0, 1.0
    found = scipy.stats.wilcoxon(different)
    return float(found.statistic), float(found.pvalue)


def _errors(errors: object, name: str) -> Floats:
    """Validate errors, (n,) float64."""
    if (found := as_floats(errors)) is None:
        raise InvalidData(f"{name} must contain numbers, one error per split.")
    if found.ndim != 1:
        raise InvalidData(f"{name} must be a vector with one error per split; got {found.shape}.")
    bad = np.flatnonzero(~np.isfinite(found))
    if len(bad):
        raise InvalidData(f"{name} has a missing or infinite error in split {int(bad[0])}.")
    return found
