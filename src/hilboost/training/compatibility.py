"""Checks that a learner or kernel can use the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hilboost.core.errors import IncompatibleParts
from hilboost.core.learner import Learner
from hilboost.model.resolved import is_auto
from hilboost.tables.choice import category_choice
from hilboost.tables.schema import Schema


def learner_name(learner: Any) -> str:
    """Return the name of a learner for messages."""
    return repr(learner) if isinstance(learner, str) else type(learner).__name__


def nan_refused_by(given: Iterable[Any], instead: str) -> str:
    """Name the first learner object that does not support missing values, and one that does.

    Learners by name and scikit-learn's regressors check their inputs themselves.  The end of a
    message; empty if there is no such learner.
    """
    learners = (part for one in given if isinstance(one, Learner) for part in one.parts)
    for learner in learners:
        if not learner.capabilities.takes_missing_values:
            return (
                f"which {learner_name(learner)} does not support; replace or drop missing values, "
                f"or use learner={instead!r}."
            )
    return ""


def check_learner(learner: Learner, schema: Schema, name: str, instead: str) -> None:
    """Reject category columns if the learner would treat them as numbers, and say what to use."""
    if schema.categories and not learner.capabilities.takes_categories:
        column = schema.columns[schema.categories[0]]
        raise IncompatibleParts(
            f"column {column.name!r} contains categories, but {name} supports only numbers. Encode "
            "it, for instance with scikit-learn's OneHotEncoder or OrdinalEncoder, or "
            f"{instead}."
        )


def check_kernel(kernel: Any, given: object, schema: Schema) -> None:
    """Reject text columns if the kernel would treat their codes as numbers.

    Codes of columns that are listed in ``categorical_features`` are compared by the kernel.
    """
    listed = category_choice(given, len(schema.columns), schema.names) or ()
    others = [k for k in schema.categories if k not in listed]
    if others and not is_auto(kernel):
        column = schema.columns[others[0]]
        raise IncompatibleParts(
            f"column {column.name!r} contains categories, but kernel={kernel!r} compares numbers. "
            "Set kernel='auto', or list the column in categorical_features and use a kernel that "
            "compares codes, such as a product with OnColumns(Delta(), ...)."
        )
