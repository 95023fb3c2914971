"""Fixtures of the tests of estimators."""

import pytest

from hilboost.training import race


@pytest.fixture
def runs(monkeypatch):
    """The settings, the numbers of stages asked for, and those reached, of all trial runs."""
    found = []
    in_order = race._in_order

    def noted(fit, trials, n_stages):
        best_first = in_order(fit, trials, n_stages)
        for trial in trials:
            one = trial.candidate.resolved
            settings = one.max_features, one.l2_regularization, one.max_leaf_nodes
            found.append((settings, n_stages, trial.n_stages))
        return best_first

    monkeypatch.setattr(race, "_in_order", noted)
    return found
