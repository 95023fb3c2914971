"""Estimators declare their parameters as dataclasses do, and are none."""

import inspect
import pickle
from dataclasses import KW_ONLY, is_dataclass
from typing import ClassVar, get_type_hints

import pytest
from sklearn.base import BaseEstimator, clone

import hilboost.estimators
from hilboost.estimators.signatures import with_parameters


@with_parameters
class Base(BaseEstimator):
    first: "int" = 1
    _: "KW_ONLY"
    second: "str" = "auto"
    third: "float" = 0.5
    fixed: "ClassVar[int]" = 3


@with_parameters
class Derived(Base):
    _: "KW_ONLY"
    fourth: "bool" = True
    second: "str" = "other"


def test_subclasses_add_parameters_and_change_defaults():
    known = inspect.signature(Derived).parameters
    assert [(one.name, one.default) for one in known.values()] == [
        ("first", 1),
        ("second", "other"),
        ("third", 0.5),
        ("fourth", True),
    ]
    assert str(inspect.signature(Base)).startswith("(first: int = 1, *, second: str = 'auto'")
    found = pickle.loads(pickle.dumps(clone(Derived(2, third=1.5))))
    assert found.get_params() == {"first": 2, "second": "other", "third": 1.5, "fourth": True}
    assert repr(found) == "Derived(first=2, third=1.5)"
    with pytest.raises(TypeError, match="positional"):
        Derived(2, "auto")


@pytest.mark.parametrize("name", hilboost.estimators.__all__)
def test_estimators_are_no_dataclasses(name):
    """Dask, for example, would take the parameters of a fitted model for all of it."""
    cls = getattr(hilboost.estimators, name)
    assert not is_dataclass(cls)
    assert set(vars(cls())) == set(inspect.signature(cls).parameters)
    assert {*get_type_hints(cls.__init__)} >= set(vars(cls()))
