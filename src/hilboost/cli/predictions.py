"""Implementation of ``hilboost predict``, and the columns of a table that a model uses."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import hilboost
from hilboost.cli.columns import align_columns, require_column, split_aside
from hilboost.cli.dates import used_columns, with_calendar
from hilboost.cli.errors import CliError, note
from hilboost.cli.files import STDIN, check_output
from hilboost.cli.options import PredictJob
from hilboost.cli.tables import table_parts, write_tables
from hilboost.core.errors import counted, first_few, with_article
from hilboost.validation.weights import errors_in_rows

if TYPE_CHECKING:
    import pandas as pd

_MANY = 0.05  # fraction of the rows in which a new level is noted


def run_predict(job: PredictJob) -> None:
    """Predict the rows of a table with a saved model."""
    out = None if job.out == STDIN else job.out
    if out is not None:
        check_output(out, [job.model, job.table])
    model = hilboost.load(job.model)
    try:
        write_tables(_predicted(model, job), out, job.spreadsheet_safe)
    except UnicodeEncodeError as error:
        raise CliError(
            f"A predicted class contains {error.object[error.start]!r}, which is not valid "
            "Unicode text; rename the class and fit again."
        ) from None


def _predicted(model: Any, job: PredictJob) -> Iterator["pd.DataFrame"]:
    """Predict the parts of the table, and print the notes that all of them cause."""
    names = model.fitted_.schema.names or ()
    used = used_columns(names)
    unused = [name for name in job.keep if name not in used]
    whole = used > {*names}  # all dates tell their order
    parts = table_parts(job.table, [*text_columns(model), *unused], job.dialect, whole)
    notes: dict[str, str] | None = None
    for part in parts:
        kept = _kept(part, job.keep)
        frame, offset = split_aside(part, job.offset, "--offset", used)
        more = {} if offset is None else {"offset": offset.to_numpy()}
        # Without names in the model, its columns are all of the first ones.
        by_name = model.fitted_.schema.names is not None or frame.shape[1] > model.n_features_in_
        aside = unused if by_name else []
        told: list[str] = []
        X = model_columns(model, frame, aside, job.dialect.date_order, told.append)
        own = {sentence.partition(" (for example")[0]: sentence for sentence in told}
        notes = {key: notes[key] for key in notes.keys() & own} if notes is not None else own
        with errors_in_rows(part.index.to_numpy()):
            found = _predictions(model, X, job.proba, more)
            if job.coverage is not None:
                uncertain = _set if model.fitted_.codec.kind == "classes" else _interval
                found = found.assign(**uncertain(model, X, job.coverage, more))
        yield _beside(kept.reset_index(drop=True), found)
    for sentence in (notes or {}).values():
        note(sentence)


def _kept(frame: "pd.DataFrame", names: Sequence[str]) -> "pd.DataFrame":
    """Return the columns of ``--keep``."""
    for name in names:
        require_column(name, frame, "--keep")
    return frame[list(dict.fromkeys(names))]


def _beside(kept: "pd.DataFrame", predictions: "pd.DataFrame") -> "pd.DataFrame":
    """Place the columns of ``--keep`` before the predictions."""
    for name in kept.columns.intersection(predictions.columns):
        raise CliError(
            f"--keep '{name}' has the name of a column of predictions; rename it in the table."
        )
    return kept.join(predictions) if len(kept.columns) else predictions


def text_columns(model: Any) -> list[str]:
    """Columns that contained text categories in fit."""
    return [str(column.name) for column in model.fitted_.schema.columns if column.holds_text]


def model_columns(
    model: Any,  # fitted
    frame: "pd.DataFrame",
    aside: Collection[str] = (),  # columns that need no note if they are not used
    date_order: str | None = None,  # of dates whose year comes last
    tell: Callable[[str], None] = note,
) -> Any:
    """Select and convert the feature columns of a model."""
    names = model.fitted_.schema.names
    unused = set(aside) - used_columns(names or ())
    frame = frame.drop(columns=frame.columns.intersection(list(unused)))
    if names is None:
        # A model fitted on an array identifies its columns by position only.
        if frame.shape[1] != model.n_features_in_:
            raise CliError(
                f"The model was fitted on {model.n_features_in_} unnamed columns, but the "
                f"table has {frame.shape[1]}; pass a table with the same columns."
            )
        tell("the model has no column names; using the columns in the order of the table.")
        return frame.to_numpy()
    frame = with_calendar(frame, list(names), date_order)
    features, extra = align_columns(frame, list(names))
    if extra:
        what = counted(len(extra), "column")
        tell(f"ignoring {what} that the model does not use: {first_few(extra)}.")
    _note_new_levels(model, features, tell)
    return features


def _note_new_levels(model: Any, features: "pd.DataFrame", tell: Callable[[str], None]) -> None:
    """Print a note for each column with a frequent value, or only values, not seen in fit."""
    for column in model.fitted_.schema.columns:
        if not column.holds_text:
            continue
        values = features[column.name].dropna().astype(str)
        new = values[~values.isin(column.levels)]
        if 0 < len(new) == len(values):
            tell(
                f"no value of column '{column.name}' occurred in fit (for example, it now contains "
                f"'{values.iloc[0]}', but contained '{column.levels[0]}' in fit)."
            )
        elif len(new) and new.value_counts().iloc[0] > _MANY * len(features):
            most = new.mode()[0]
            tell(
                f"'{most}' in column '{column.name}' did not occur in fit, and is in more than "
                f"{_MANY:.0%} of the rows; if the fit read it as missing, add --missing '{most}'."
            )


def _predictions(model: Any, X: object, proba: bool, more: dict[str, Any]) -> "pd.DataFrame":
    import pandas as pd

    values = model.predict(X, **more)
    if isinstance(values, list):  # strings, nodes, or label sets
        sets = (sorted(map(str, y)) if isinstance(y, set) else [str(y)] for y in values)
        return pd.DataFrame({"prediction": ["; ".join(labels) for labels in sets]})
    if values.ndim > 1:
        values = values.reshape(len(values), -1)
        names = [f"prediction_{name}" for name in _output_names(model, values.shape[1])]
        return pd.DataFrame(values, columns=names)
    result = pd.DataFrame({"prediction": values})
    if proba:
        probabilities = _method(model, "predict_proba", "--proba")(X, **more)
        result[[f"probability_{label}" for label in model.classes_]] = probabilities
    return result


def _interval(model: Any, X: object, coverage: float, more: dict[str, Any]) -> dict[str, Any]:
    """Columns of the lower and upper ends, of each output."""
    ends = _method(model, "predict_interval", "--coverage")(X, coverage, **more)
    if ends.ndim == 2:
        return {"lower": ends[:, 0], "upper": ends[:, 1]}
    return {
        f"{end}_{name}": ends[:, k, j]
        for k, name in enumerate(_output_names(model, ends.shape[1]))
        for j, end in enumerate(("lower", "upper"))
    }


def _set(model: Any, X: object, coverage: float, more: dict[str, Any]) -> dict[str, Any]:
    """A column of the classes in the set of each row."""
    names = [str(label) for label in model.classes_]
    rows = _method(model, "predict_set", "--coverage")(X, coverage, **more)
    return {"set": ["; ".join(compress(names, row)) for row in rows]}


def _method(model: Any, name: str, option: str) -> Any:
    try:
        return getattr(model, name)
    except AttributeError:
        raise CliError(
            f"{option} is not supported by {with_article(type(model).__name__)} that was "
            f"fitted with loss={model.loss!r}; remove {option}."
        ) from None


def _output_names(model: Any, n_outputs: int) -> list[str]:
    """Names of the levels or the targets, or their numbers."""
    if model.loss == "quantile":
        return [f"q{level:g}" for level in model.quantile]
    codec = model.fitted_.codec
    names = codec.of_numbers().names if codec.kind == "numbers" else None
    return list(names or map(str, range(n_outputs)))
