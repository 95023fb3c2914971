"""Fits to tables on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from hilboost.core.callback import Callback
from hilboost.core.dtypes import PerRow
from hilboost.core.errors import InvalidParameter, InvalidType, shown
from hilboost.core.plain_values import all_text, entries
from hilboost.estimators.base import division_of
from hilboost.stream.source import dataset_of, require_column, table_of, values_of
from hilboost.validation.choices import check_supported_values

Estimator = TypeVar("Estimator")


def fit(
    model: Estimator,
    source: object,
    target: str | Sequence[str],
    *,
    sample_weight: str | None = None,
    offset: str | Sequence[str] | None = None,
    groups: str | None = None,
    time: str | None = None,
    ignore: str | Sequence[str] = (),
    X_val: object = None,
    y_val: object = None,
    offset_val: PerRow = None,
    callbacks: Sequence[Callback] = (),
    folder: str | Path | None = None,
) -> Estimator:
    """Fit a model of trees to a table on disk: the model of the table in memory, bit for bit.

    Parameters
    ----------
    model : BoostingRegressor or BoostingClassifier
        With ``learner="auto"``, it consists of trees.
    source : str, Path, pyarrow Dataset, Table or RecordBatch, or iterable of pyarrow.RecordBatch
        A Parquet file, a folder of such files, an Arrow table or dataset, or batches.  As in
        ``pandas.read_parquet``, folders such as ``city=Ghent`` are a column of categories, and an
        index that pandas has stored is not a column.
    target : str, or sequence of str
        Names of the target columns, or of the bounds of a target; all other columns are inputs.
    sample_weight : str, optional
        Name of the column with sample weights.
    offset : str, or sequence of str, optional
        Name of the column with offsets, or names of one for each output: a known part of
        ``predict_raw``, as in the method ``fit`` of the estimator.
    groups, time : str, optional
        Name of the column with groups of rows that are held out as a whole, or with times: the
        latest rows are held out, as in the method ``fit`` of the estimator.
    ignore : str, or sequence of str
        Names of columns that are not inputs.
    X_val, y_val, offset_val : array-like, optional
        Validation data in memory for early stopping, used instead of held-out rows.
    callbacks : sequence of callables
        As in the method ``fit`` of the estimator.
    folder : str or Path, optional
        Folder for temporary files: one byte for each cell, four more for each cell of text,
        and the batches of an iterable.  By default, the folder for temporary files of the system.

    Returns
    -------
    estimator
        ``model`` itself, fitted.

    Raises
    ------
    InvalidData, InvalidParameter, InvalidType
        The table or the parameters are invalid, or a file is damaged.
    DiskFull
        The disk of ``folder`` has too little space.

    Warns
    -----
    DataWarning
        Some files do not have all columns, or a column of text has numbers in nearly all rows.

    Notes
    -----
    Targets and weights are read first, then a sample of the rows from which the bins are computed,
    then all rows, which become one byte for each cell in a memory-mapped file.  In memory remain
    about 60 bytes for each row and output, and the held-out rows.
    """
    parameters = _checked_parameters(model)
    estimator: Any = model
    names = _names("target", target)
    with _temporary_folder(folder) as place:
        dataset = dataset_of(source, place)
        columns = [values_of(dataset, name) for name in names]
        beside_rows = (("sample_weight", sample_weight), ("groups", groups), ("time", time))
        named = {key: _name(key, name) for key, name in beside_rows if name is not None}
        of_rows = {key: values_of(dataset, name) for key, name in named.items()}
        beside = [] if offset is None else _names("offset", offset)
        known = [values_of(dataset, name) for name in beside]
        ignored = _names("ignore", ignore)
        for name in ignored:
            require_column(dataset, name)
        without = [*names, *ignored, *beside, *named.values()]
        y = columns[0]
        if not isinstance(target, str):
            y = pd.DataFrame(np.column_stack(columns), columns=names)
        categorical = parameters["categorical_features"]
        X = table_of(dataset, without, categorical, len(y), place.parent)
        grown = clone(estimator).set_params(learner="tree")
        grown.fit(
            X,
            y,
            **of_rows,
            offset=np.column_stack(known) if known else None,
            X_val=X_val,
            y_val=y_val,
            offset_val=offset_val,
            callbacks=callbacks,
        )
    for name in ("fitted_", "n_features_in_", "feature_names_in_"):
        setattr(estimator, name, getattr(grown, name))
    return model


def _names(parameter: str, given: Any) -> list[str]:
    """Return the names of columns; a string is one name."""
    names = entries(given)
    if not all_text(names):
        raise _no_name(parameter, given)
    return names


def _name(parameter: str, given: Any) -> str:
    """Return the name of a single column."""
    if not isinstance(given, str):
        raise _no_name(parameter, given)
    return given


def _no_name(parameter: str, given: object) -> InvalidType:
    return InvalidType(
        f"{parameter} must be the name of a column of the table, not {shown(given)}; write the "
        f'values into the table, and pass {parameter}="NAME".'
    )


@contextmanager
def _temporary_folder(folder: str | Path | None) -> Iterator[Path]:
    """Create a folder for temporary files within one, and remove it at the end."""
    try:
        created = tempfile.TemporaryDirectory(dir=folder, prefix="hilboost_")
    except OSError as error:
        raise InvalidParameter(
            f"folder={shown(folder)} cannot hold temporary files ({error.strerror}); create it, or "
            "choose another one."
        ) from error
    with created as place:
        yield Path(place)


def _checked_parameters(model: Any) -> dict[str, Any]:
    if isinstance(model, str):
        raise InvalidType(
            f"the model must be an estimator, such as BoostingRegressor(); got {shown(model)}."
        )
    if division_of(model) != "rows" or not model.is_tabular:
        raise InvalidType(
            "tables on disk are only supported by BoostingRegressor and BoostingClassifier, not "
            f"{type(model).__name__}; call its method fit."
        )
    parameters: dict[str, Any] = model.get_params(deep=False)
    check_supported_values(parameters, model.supported_on_disk, "tables on disk")
    return parameters
