"""Options and parameters of ``hilboost fit``, from the command line and from TOML files."""

import ast
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any

from hilboost.cli.errors import CliError
from hilboost.cli.files import check_input
from hilboost.cli.peer_options import option_for, parameter_for
from hilboost.estimators.peer_names import advice

# Keys of a configuration file, and their types.
_TEXT, _WHOLE, _NUMBER = "a string", "an integer", "a number"
_YES = "true or false"
_LEVELS, _TEXTS = "a number or a list of numbers", "a string or a list of strings"
_KEYS: dict[str, str] = {
    "table": _TEXT,
    "target": _TEXT,
    "out": _TEXT,
    "weights": _TEXT,
    "group": _TEXT,
    "event": _TEXT,
    "offset": _TEXT,
    "ignore": _TEXTS,
    "valid": _TEXTS,
    "task": _TEXT,
    "family": _TEXT,
    "loss": _TEXT,
    "quantile": _LEVELS,
    "metric": _TEXTS,
    "sep": _TEXT,
    "decimal": _TEXT,
    "encoding": _TEXT,
    "dates": _TEXT,
    "date_order": _TEXT,
    "missing": _TEXTS,
    "coerce": _YES,
    "drop_missing_target": _YES,
    "n_estimators": _WHOLE,
    "learning_rate": _NUMBER,
    "random_state": _WHOLE,
    "threads": _WHOLE,
    "time_budget": _NUMBER,
    "stream": _YES,
    "dask": _TEXT,
}
_PATHS = ("table", "out", "valid")
_CHOICES = {
    "task": ("auto", "regression", "classification", "ranking", "survival"),
    "family": ("tree", "kernel"),
    "dates": ("ignore", "expand", "text"),
    "date_order": ("dmy", "mdy"),
}


def options_of_fit(
    given: dict[str, Any], config: Path | None, settings: Iterable[str]
) -> dict[str, Any]:  # keys are the fields of :class:`hilboost.cli.jobs.FitJob`
    """Add options of a TOML file to the options of the command line.

    ``given``: options of the command line; ``None``, false or an empty list if an option is not
    set. ``config``: its keys are the options, with "-" or "_"; paths are relative to its folder.
    The table ``[set]`` contains parameters of the estimator. ``settings``: parameters of the
    estimator, ``name=value``, which take precedence over ``[set]``.  Values are Python literals
    (``5``, ``0.1``, ``None``, ``[0, 1]``); others are strings.
    """
    options, parameters = ({}, {}) if config is None else _read_config(config)
    for name, value in given.items():
        if value is not False and value not in (None, [], ()):
            options[name] = tuple(value) if isinstance(value, list) else value
    return {**options, "settings": parameters | _parse_settings(settings)}


def _parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise CliError(f"--set requires name=value, such as --set max_depth=4; got '{text}'.")
        if name in found:
            raise CliError(f"--set sets '{name}' twice; set it only once.")
        found[name] = _literal(value.strip())
    return found


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def parameters_of(estimator: type, settings: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the settings if the estimator has all these parameters.

    ``where``: source of the settings, for the error message.
    """
    known = [name for name in signature(estimator).parameters if name != "self"]
    for name in settings:
        if name not in known:
            caller = estimator.__name__
            instead = advice(name, known, (), caller)
            hint = instead or _nearest(name, known)
            hint = hint if hint.endswith(("?", ".")) else f"{hint}."
            raise CliError(f"{where}: {caller} has no parameter '{name}'; {hint}")
    return settings


def _nearest(name: str, known: Iterable[str]) -> str:
    """Suggest known names for an unknown one."""
    known = list(known)
    near = " or ".join(f"'{one}'" for one in get_close_matches(name, known, n=2, cutoff=0.7))
    return f"did you mean {near}?" if near else f"valid names are {', '.join(known)}."


def _read_config(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read options and parameters from a TOML file."""
    check_input(path)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CliError(f"'{path}' is not a valid TOML file: {error}.") from None
    settings = found.pop("set", {})
    if not isinstance(settings, dict):
        raise CliError(f"'{path}': set must be a table of parameters, [set].")
    options: dict[str, Any] = {}
    for written, value in found.items():
        key = written.replace("-", "_")
        if key not in _KEYS:
            hint = _instead(key) or _nearest(key, [*_KEYS, "set"])
            raise CliError(f"'{path}' has the unknown key '{written}'; {hint}")
        if key in options:
            raise CliError(f"'{path}' sets '{key}' twice; set it only once.")
        options[key] = _checked(path, key, value)
    return options, {name.replace("-", "_"): value for name, value in settings.items()}


def _instead(key: str) -> str | None:
    """Return what to write instead of a key that another library has."""
    same = option_for(key, _KEYS)
    if same is not None:
        return f"use {same}."
    parameter = parameter_for(key)
    return None if parameter is None else f"set {parameter} in the table [set]."


def _checked(path: Path, key: str, value: Any) -> Any:
    kind = _KEYS[key]
    if not _is(value, kind):
        raise CliError(f"'{path}': {key} must be {kind}; got {value!r}.")
    if key in _CHOICES and value not in _CHOICES[key]:
        raise CliError(f"'{path}': {key} must be one of {', '.join(_CHOICES[key])}; got {value!r}.")
    values = tuple(value) if isinstance(value, list) else (value,)
    if key in _PATHS:
        values = tuple(Path(one) if one == "-" else path.parent / one for one in values)
    return values if kind in (_LEVELS, _TEXTS) else values[0]


def _is(value: Any, kind: str) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == _TEXT:
        return isinstance(value, str)
    if kind == _YES:
        return isinstance(value, bool)
    if kind == _WHOLE:
        return number and isinstance(value, int)
    if kind == _NUMBER:
        return number
    one = _NUMBER if kind == _LEVELS else _TEXT
    values = value if isinstance(value, list) else [value]
    return len(values) > 0 and all(_is(v, one) for v in values)
