"""Every estimator names the parameter whose value has a wrong type or lies out of range."""

from inspect import isabstract, isclass
from numbers import Integral

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils._param_validation import Interval, StrOptions, make_constraint
from tests.refusals import refused

import hilboost

X = np.random.default_rng(0).normal(size=(20, 2))
Y = np.exp(X[:, 0])
ESTIMATORS = [
    one
    for name in hilboost.__all__
    if isclass(one := getattr(hilboost, name)) and issubclass(one, BaseEstimator)
]


def out_of_range(constraint):
    """Values that a constraint of scikit-learn excludes, at both ends of a range."""
    yield object()
    if isinstance(constraint, StrOptions):
        yield "none of these"
    if isinstance(constraint, Interval):
        for end, step, open_ends in (
            (constraint.left, -1, ("right", "neither")),
            (constraint.right, 1, ("left", "neither")),
        ):
            if end is not None:
                yield end + step
                yield end if constraint.closed in open_ends else end + step / 8
        if constraint.type is Integral:
            yield 2.5


@pytest.mark.parametrize("estimator", [one for one in ESTIMATORS if not isabstract(one)])
def test_values_that_a_parameter_does_not_take(estimator):
    labels = np.where(Y > 1, "a", "b") if is_classifier(estimator()) else Y
    tried = set()
    for name, given in estimator._parameter_constraints.items():
        constraints = [make_constraint(one) for one in given]
        for value in (bad for one in constraints for bad in out_of_range(one)):
            if not any(one.is_satisfied_by(value) for one in constraints):
                model = estimator().set_params(**{name: value})
                sentence = f"'{name}' parameter of {estimator.__name__} must be"
                refused((ValueError, TypeError), sentence, model.fit, X, labels)
                tried.add(name)
    assert len(tried) >= 7
