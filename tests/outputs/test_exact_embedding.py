"""An output space with formulas for points and pre-images needs no further methods."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pytest

from hilboost.core.errors import InvalidData
from hilboost.core.output_space import Choice, OutputSpace
from hilboost.outputs import ExactEmbedding
from hilboost.testing import OutputSpaceContract


def angles_of(labels, what="Y"):
    for row, label in enumerate(labels):
        if not isinstance(label, Real) or not np.isfinite(label):
            raise InvalidData(f"row {row} of {what} must be a finite angle; got {label!r}.")
    if len(labels) == 0:
        raise InvalidData(f"{what} must contain at least one angle.")
    return np.asarray(labels, dtype=float)


@dataclass(frozen=True)
class AngleEmbedding(ExactEmbedding):
    training: Any

    def checked(self, labels, what="Y"):
        return angles_of(labels, what)

    def points(self, labels):
        return np.column_stack([np.cos(labels), np.sin(labels)])

    def exact(self, raw):
        return np.arctan2(raw[:, 1], raw[:, 0]) % (2 * np.pi)


class Angles(OutputSpace):
    def fit(self, labels):
        return AngleEmbedding(angles_of(labels))


class OfAngles(OutputSpaceContract):
    exact = ("exact",)

    def make(self):
        return Angles()

    def labels(self, rng, n):
        return rng.uniform(0, 2 * np.pi, size=n)


@pytest.mark.parametrize("check", OutputSpaceContract.checks())
def test_contract(check):
    getattr(OfAngles(), check)()


def test_training_labels_are_kept_and_candidates_named():
    embedding = Angles().fit(np.array([0, 1, 2], dtype=np.float32))
    np.testing.assert_array_equal(embedding.training_labels(), [0, 1, 2])
    raw = embedding.encode([0.9])
    np.testing.assert_allclose(embedding.labels_of(raw), [0.9])
    assert embedding.decode(raw, "nearest") == embedding.decode(raw, "cosine") == [1]
    assert embedding.decode(raw, "exact", Choice([0.2, 0.7])) == [0.7]
    with pytest.raises(InvalidData, match="row 1 of candidates must be a finite angle; got None"):
        embedding.decode(raw, "nearest", Choice([0.5, None]))
