"""Implementation of ``hilboost evaluate``, ``report``, ``inspect``, and ``export``."""

import json
from typing import TYPE_CHECKING, Any

import hilboost
from hilboost.cli.columns import rows_with_target, split_aside, survival_target, target_names
from hilboost.cli.dates import used_columns
from hilboost.cli.errors import CliError, UsageError, note
from hilboost.cli.files import check_output
from hilboost.cli.jobs import chosen_scores
from hilboost.cli.options import EvaluateJob, ExportJob, InspectJob, LabeledTable, ReportJob
from hilboost.cli.predictions import model_columns, text_columns
from hilboost.cli.tables import read_table
from hilboost.core.errors import counted, first_few
from hilboost.validation.weights import errors_in_rows

if TYPE_CHECKING:
    import pandas as pd

_IMPORTANCES_SHOWN = 10


def _rows(model: Any, table: LabeledTable) -> tuple[Any, Any, dict[str, Any], set[str]]:
    """Return features, true values, other columns by argument, and columns not used as X."""
    frame = read_table(table.table, text_columns(model), table.dialect)
    used = used_columns(model.fitted_.schema.names or ())
    frame, event = split_aside(frame, table.event, "--event", used)
    frame, groups = split_aside(frame, table.group, "--group", used)
    frame, offset = split_aside(frame, table.offset, "--offset", used)
    frame, weights = split_aside(frame, table.weights, "--weights", used)
    targets = _targets(model, frame, table.target)
    known = rows_with_target(frame[targets], table.drop_missing_target)
    frame = frame[known]
    named = (*targets, table.event, table.group, table.offset, table.weights)
    aside = {name for name in named if name is not None}
    X = model_columns(model, frame, aside, table.dialect.date_order)
    y = frame[targets]
    if len(targets) == 1:
        text = model.fitted_.codec.kind == "classes" and model.classes_.dtype.kind in "UO"
        y = y[targets[0]].astype(str) if text else y[targets[0]]
    if event is not None:
        y = survival_target(y, event[known])
    more = {"groups": groups, "offset": offset, "sample_weight": weights}
    given = {name: found[known].to_numpy() for name, found in more.items() if found is not None}
    return X, y, given, aside


def _targets(model: Any, frame: "pd.DataFrame", given: str | None) -> list[str]:
    """Return the columns of true values, one for each target of the model."""
    codec = model.fitted_.codec
    several = codec.of_numbers() if codec.kind == "numbers" else None
    n_targets, trained = (1, None) if several is None else (several.n_targets, several.names)
    if given is None:
        names = _other_columns(model, frame, n_targets)
    else:
        names = target_names(given, frame)
    if len(names) != n_targets:
        what = f"'{','.join(trained)}'" if trained else "FIRST,SECOND"
        raise UsageError(
            f"The model predicts {counted(n_targets, 'target')}; name their columns, as --target "
            f"{what}."
        )
    if trained is not None and set(names) == set(trained):
        names = list(trained)  # in the order of the fit
    for name in names:
        if name in (model.fitted_.schema.names or ()):
            raise CliError(
                f"The model uses the column '{name}' as a feature, so that it cannot be the "
                "target; choose the column that the model predicts."
            )
    return names


def _other_columns(model: Any, frame: "pd.DataFrame", n_targets: int) -> list[str]:
    """Return the columns that the model does not use, if there is exactly one for each target."""
    known = used_columns(model.fitted_.schema.names or ())
    others = [name for name in frame.columns if name not in known]
    if not known or len(others) != n_targets:
        raise UsageError(
            "The column of true values is ambiguous; specify it with --target"
            + (f" (the model does not use {first_few(others)})." if known else ".")
        )
    what, only = ("target", "column") if n_targets == 1 else ("targets", "columns")
    note(f"using {first_few(others)} as the {what}, the only {only} that the model does not use.")
    return others


def run_evaluate(job: EvaluateJob) -> str:  # one line per metric, or one JSON object
    """Evaluate a model on a table."""
    model = hilboost.load(job.model)
    X, y, more, _ = _rows(model, job.rows)
    with errors_in_rows(y.index.to_numpy()):
        scores = chosen_scores(model, X, y, job.metric, **more)
    marks = model.fitted_.marks

    from hilboost.report.evaluation import recurring

    for sentence in [] if marks is None else recurring(model, X, marks):
        note(sentence)
    if job.as_json:
        return json.dumps({"model": str(job.model), "rows": len(y), "scores": scores})
    width = max(len(name) for name in scores)
    texts = {name: "–" if v is None else format(v, ".6g") for name, v in scores.items()}
    return "\n".join(f"{name:{width}}  {text}" for name, text in texts.items())


def run_report(job: ReportJob) -> str:  # message with the path of the report
    """Write an HTML report."""
    table, trained_on = job.rows, [] if job.train is None else [job.train]
    check_output(job.out, [job.model, table.table, *trained_on, *job.versus])
    model = hilboost.load(job.model)
    X, y, more, named = _rows(model, table)
    name = job.title or f"{job.model.name} on {counted(len(y), 'row')} of {table.table.name}"
    if not job.versus:
        if job.train is not None:
            frame = read_table(job.train, text_columns(model), table.dialect)
            more["X_train"] = model_columns(
                *(model, frame, named, table.dialect.date_order),
                lambda text: note(f"'{job.train}': {text}"),
            )
        with errors_in_rows(y.index.to_numpy()):
            page = model.report(X, y, job.out, title=name, times=job.times or None, **more)
        for sentence in page.facts["warnings"]:
            note(sentence)
        return f"Saved the report to '{job.out}'."
    for option, given in (("--train", job.train), ("--times", job.times)):
        if given:
            raise UsageError(f"{option} is not supported with --versus; remove one of them.")
    from hilboost.report import compare

    models = {path.name: hilboost.load(path) for path in job.versus}
    if len(models | {job.model.name: model}) <= len(job.versus):
        raise UsageError("--versus requires files with different names; rename one of them.")
    compare({job.model.name: model} | models, X, y, job.out, title=job.title, **more)
    return f"Saved the comparison to '{job.out}'."


def run_inspect(job: InspectJob) -> str:  # readable lines, or one JSON object
    """Describe a model."""
    from hilboost.report.about import model_facts

    model = hilboost.load(job.model)
    facts = model_facts(model)
    facts["importances"] = _importances(model)
    facts["columns"] = _columns(model)
    facts["bytes"] = job.model.stat().st_size
    del facts["column_names"]
    text = json.dumps(facts, ensure_ascii=False) if job.as_json else "\n".join(_lines(facts))
    # Levels may contain lone surrogates, which terminals cannot display.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _importances(model: Any) -> list[dict[str, Any]] | None:
    from hilboost.core.errors import HilboostError

    try:
        gains = model.feature_importances_
    except (AttributeError, HilboostError):  # a model without splits
        return None
    names = model.fitted_.schema.names or [f"column {k}" for k in range(len(gains))]
    return [
        {"name": names[k], "gain": float(gains[k])}
        for k in sorted(range(len(gains)), key=lambda k: -gains[k])
    ]


def _columns(model: Any) -> list[dict[str, Any]]:
    """Names, kinds, and levels of the columns."""
    found, named = model.fitted_.schema.columns, model.fitted_.schema.names is not None
    names = [one.name if named else f"column {one.name}" for one in found]
    return [
        {"name": name, "kind": one.kind, "levels": list(map(str, one.levels))}
        for name, one in zip(names, found, strict=True)
    ]


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [f"{facts['class']}, loss {facts['loss']}"]
    n_stages = facts["n_stages"] or 0
    stages, size = counted(n_stages, "stage"), counted(facts["n_columns"], "column")
    if facts["n_leaves"] is not None:
        stages += f" with {facts['n_leaves']} leaves in total"
    lines.append(f"{stages}; {size}; {facts['bytes'] / 1000:.0f} kB")
    if facts["classes"] is not None:
        lines.append(f"classes: {first_few(facts['classes'], str)}")
    if facts["history"] is not None:
        lines += [facts["history"]["summary"], facts["history"]["remark"]]
    kernel = facts["kernel"]
    if kernel is not None:
        noise = kernel["regularization"]
        lines.append(f"kernel: {kernel['text']}{'' if noise is None else f'; λ {noise:.4g}'}")
    chosen = [f"{p['name']}={p['value']}" for p in facts["parameters"] if p["chosen"]]
    lines.append(f"non-default parameters: {', '.join(chosen) or 'none'}")
    became = [f"{p['name']}={p['became']}" for p in facts["parameters"] if p["became"] is not None]
    if became:
        lines.append(f"automatic parameters: {', '.join(became)}")
    lines.append("columns:")
    gains = {one["name"]: one["gain"] for one in facts["importances"] or ()}
    columns = facts["columns"]
    if gains:
        columns = sorted(columns, key=lambda column: -gains[column["name"]])
    width = max(len(column["name"]) for column in columns[:_IMPORTANCES_SHOWN])
    for column in columns[:_IMPORTANCES_SHOWN]:
        gain = f"  {100 * gains[column['name']]:5.1f} % importance" if gains else ""
        levels = f"  levels {first_few(column['levels'], str)}" if column["levels"] else ""
        lines.append(f"  {column['name']:{width}}{gain}{levels}".rstrip())
    more = len(columns) - _IMPORTANCES_SHOWN
    return [*lines, f"  and {more} more"] if more > 0 else lines


def run_export(job: ExportJob) -> str:
    """Export a model to another format, and return a message with the path."""
    check_output(job.out, [job.model])

    from hilboost.export.registry import export_formats

    formats = export_formats()
    if job.form not in formats:
        known = ", ".join(sorted(formats))
        raise UsageError(f"--format {job.form} is unknown; choose one of {known}.")
    formats[job.form](hilboost.load(job.model), job.out)
    return f"Saved the {job.form} model to '{job.out}'."
