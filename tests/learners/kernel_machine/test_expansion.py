"""Sums of kernel expansions, merged and one by one."""

from dataclasses import replace

import numpy as np
import pytest

from hilboost.core.base_model import Term
from hilboost.core.errors import InvalidData
from hilboost.kernels import Gaussian, Matern
from hilboost.learners.kernel_machine.expansion import KernelExpansion, merge
from hilboost.learners.kernel_machine.feature_map import FeatureMap

GAUSSIAN, MATERN = Gaussian(1.0), Matern(2.0, 1.5)
INPUTS = replace(FeatureMap.unscaled(2), center=np.array([1.0, -1.0]), scale=np.array([2.0, 0.5]))


def expansion(rng, m, r, kernel=GAUSSIAN, inputs=INPUTS, dtype=np.float64, rows=None):
    basis = rng.normal(size=(m, 2)).astype(dtype)
    return KernelExpansion(kernel, inputs, basis, rng.normal(size=(m, r)), rows)


def part(model, first=0, coefficient=None):
    r = model.weights.shape[1]
    coefficient = np.linspace(0.5, 2, r) if coefficient is None else coefficient
    return Term(model, slice(first, first + r), coefficient)


def one_by_one(parts, X, r):
    raw = np.zeros((len(X), r))
    for p in parts:
        raw[:, p.columns] += p.coefficient * p.model.predict_raw(X)
    return raw


def together(parts, X, r, n_threads=1):
    raw = np.zeros((len(X), r))
    KernelExpansion.sum_of(parts).add_to(raw, X, n_threads)
    return raw


def test_an_expansion_is_its_formula():
    rng = np.random.default_rng(0)
    model, X = expansion(rng, 7, 2), rng.normal(size=(20, 2))
    scaled = (X - INPUTS.center) / INPUTS.scale
    expected = GAUSSIAN.block(scaled, model.basis) @ model.weights
    np.testing.assert_allclose(model.predict_raw(X), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_sums_are_those_of_the_parts(dtype, n_threads):
    rng = np.random.default_rng(0)
    others = FeatureMap.unscaled(2)
    parts = [
        part(expansion(rng, 5, 3, dtype=dtype)),
        part(expansion(rng, 9, 1, dtype=dtype), 2),
        part(expansion(rng, 4, 2, MATERN, dtype=dtype), 1),
        part(expansion(rng, 6, 3, GAUSSIAN, others, dtype=dtype)),
        part(expansion(rng, 3, 1, dtype=dtype), 0),
    ]
    X = rng.normal(size=(50, 2))
    limit = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(
        together(parts, X, 3, n_threads), one_by_one(parts, X, 3), atol=limit
    )
    merged = merge(parts)
    assert len(merged) == 3  # kernels with their inputs
    assert sum(len(model.basis) for model, _ in merged) == 27


def test_columns_between_the_first_and_the_last():
    rng = np.random.default_rng(0)
    parts = [part(expansion(rng, 5, 1), 1), part(expansion(rng, 5, 1), 3)]
    X = rng.normal(size=(10, 2))
    ((model, columns),) = merge(parts)
    assert (columns.start, columns.stop) == (1, 4)
    raw = together(parts, X, 5)
    np.testing.assert_allclose(raw, one_by_one(parts, X, 5), atol=1e-12)
    assert not raw[:, [0, 2, 4]].any()


def test_a_shared_basis_is_kept_once():
    rng = np.random.default_rng(0)
    first = expansion(rng, 8, 2, rows=np.arange(8))
    parts = [part(first)]
    for _ in range(3):
        weights = rng.normal(size=(8, 2))
        model = KernelExpansion(GAUSSIAN, INPUTS, first.basis, weights, np.arange(8))
        parts.append(part(model, coefficient=np.array([0.3, -1.0])))
    ((merged, _),) = merge(parts)
    assert merged.basis is first.basis
    np.testing.assert_array_equal(merged.rows, np.arange(8))
    expected = sum(p.coefficient * p.model.weights for p in parts)
    np.testing.assert_allclose(merged.weights, expected, rtol=1e-12)


def test_equal_basis_vectors_are_merged_in_order():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4, 2))
    chosen = [[2, 0, 1], [1, 3], [0, 2, 3]]
    parts, total = [], np.zeros((4, 1))
    for numbers in chosen:
        weights = rng.normal(size=(len(numbers), 1))
        model = KernelExpansion(GAUSSIAN, INPUTS, points[numbers], weights, np.array(numbers))
        parts.append(part(model, coefficient=np.array([2.0])))
        np.add.at(total, numbers, 2 * weights)
    ((merged, _),) = merge(parts)
    np.testing.assert_array_equal(merged.rows, [2, 0, 1, 3])
    np.testing.assert_array_equal(merged.basis, points[[2, 0, 1, 3]])
    np.testing.assert_allclose(merged.weights, total[[2, 0, 1, 3]], rtol=1e-12)
    X = rng.normal(size=(10, 2))
    np.testing.assert_allclose(together(parts, X, 1), one_by_one(parts, X, 1), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_minus_zero_is_zero(dtype):
    basis = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, -0.0], [0.0, 0.0]], dtype=dtype)
    model = KernelExpansion(GAUSSIAN, INPUTS, basis, np.array([[1.0], [2.0], [4.0], [8.0]]))
    ((merged, _),) = merge([part(model, coefficient=np.ones(1))])
    np.testing.assert_array_equal(merged.weights, [[3.0], [12.0]])
    assert merged.rows is None


def test_rows_are_forgotten_where_one_part_has_none():
    rng = np.random.default_rng(0)
    parts = [part(expansion(rng, 3, 1, rows=np.arange(3))), part(expansion(rng, 3, 1))]
    ((merged, _),) = merge(parts)
    assert merged.rows is None


def test_no_basis_vectors():
    rng = np.random.default_rng(0)
    parts = [part(expansion(rng, 0, 1)), part(expansion(rng, 3, 1))]
    X = rng.normal(size=(10, 2))
    np.testing.assert_allclose(together(parts, X, 1), one_by_one(parts, X, 1), atol=1e-12)
    np.testing.assert_array_equal(together(parts[:1], X, 1), np.zeros((10, 1)))


def test_gaps_are_refused():
    rng = np.random.default_rng(0)
    model, X = expansion(rng, 3, 1), rng.normal(size=(10, 2))
    X[4, 1] = np.nan
    with pytest.raises(InvalidData, match="NaN in column 1"):
        model.predict_raw(X)
    with pytest.raises(InvalidData, match="NaN in column 1"):
        together([part(model)], X, 1)
