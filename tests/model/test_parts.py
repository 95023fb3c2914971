"""Mixtures in words."""

from dataclasses import replace

import numpy as np
import pytest
from tests.cases import PLAIN

from hilboost import BoostingRegressor
from hilboost.model.fit_facts import ModelPart, described
from hilboost.report.about import history_facts


def parts(tree, kernel):
    weights = {"tree": tree, "kernel": kernel}
    return {name: ModelPart(weight, 0.1, 0.01, 0.5, 1.0) for name, weight in weights.items()}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, None),
        (parts(1.0, 0.0), None),
        (parts(0.4, 0.6), "trees with weight 0.40 and a kernel machine with weight 0.60"),
        (parts(0.0, 1.0), "a kernel machine with weight 1.00, without trees"),
    ],
)
def test_words(given, text):
    assert described(given) == text
    X = np.arange(40.0)[:, None]
    model = BoostingRegressor(**PLAIN).fit(X, -X[:, 0])
    model.fitted_ = replace(model.fitted_, parts=given)
    facts = history_facts(model.fitted_)
    assert facts["summary"].startswith("trees, 10 stages" if text is None else text)
    assert facts["remark"].startswith("10 stages" if text is None else "Held-out rows decided")
