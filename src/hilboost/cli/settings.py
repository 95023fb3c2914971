"""Options of ``hilboost fit`` in TOML files, and parameters of estimators."""

import ast
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from inspect import signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hilboost.cli.dialect import Dialect
from hilboost.cli.errors import CliError
from hilboost.cli.files import check_input
from hilboost.cli.option_fields import record_of
from hilboost.cli.options import FitJob
from hilboost.cli.peer_options import option_for, parameter_for
from hilboost.core.plain_values import as_list
from hilboost.estimators.peer_names import advice

_KINDS: dict[Any, tuple[str, Any]] = {
    str: ("a string", (str,)),
    Path: ("a string", (str,)),
    int: ("an integer", (int,)),
    float: ("a number", (int, float)),
    bool: ("true or false", (bool,)),
}
"""Name and types of values in a file, by the type of the option."""


@cache
def _keys() -> dict[str, tuple[Any, ...]]:
    """The keys of a configuration file: types of an option, without ``None``, or its choices."""
    types = get_type_hints(FitJob) | get_type_hints(Dialect)
    del types["settings"], types["dialect"]
    return {name: _alternatives(kind) for name, kind in types.items()}


def _alternatives(kind: object) -> tuple[Any, ...]:
    """The choices of a literal type or of a union of these, or the type itself."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) is UnionType or get_origin(kind) is Union:
        return tuple(one for part in get_args(kind) for one in _alternatives(part))
    return () if kind is NoneType else (kind,)


def configured(job: FitJob, config: Path | None, settings: Iterable[str]) -> FitJob:
    """Add the options of a TOML file to a job; options of the command line take precedence.

    Keys of the file are options with "-" or "_", and a table ``[set]`` of parameters of the
    estimator, which ``settings``, ``name=value``, replace.
    """
    options, parameters = ({}, {}) if config is None else _read_config(config)
    for name, value in (vars(job) | vars(job.dialect)).items():
        if value is not False and value not in (None, []):
            options[name] = value
    parameters |= _parse_settings(settings)
    return replace(record_of(FitJob, options), settings=parameters)


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


def parameters_of(estimator: type, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings if the estimator has all these parameters."""
    known = [name for name in signature(estimator).parameters if name != "self"]
    for name in settings:
        if name not in known:
            caller = estimator.__name__
            hint = advice(name, known, (), caller) or _nearest(name, known)
            hint = hint if hint.endswith(("?", ".")) else f"{hint}."
            raise CliError(f"--set: {caller} has no parameter '{name}'; {hint}")
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
    keys = _keys()
    for written, value in found.items():
        key = written.replace("-", "_")
        if key not in keys:
            hint = _instead(key) or _nearest(key, [*keys, "set"])
            raise CliError(f"'{path}' has the unknown key '{written}'; {hint}")
        if key in options:
            raise CliError(f"'{path}' sets '{key}' twice; set it only once.")
        options[key] = _checked(path, key, value)
    return options, {name.replace("-", "_"): value for name, value in settings.items()}


def _instead(key: str) -> str | None:
    """Return what to write instead of a key that another library has."""
    same = option_for(key, _keys())
    if same is not None:
        return f"use {same}."
    parameter = parameter_for(key)
    return None if parameter is None else f"set {parameter} in the table [set]."


def _checked(path: Path, key: str, value: Any) -> Any:
    kind, *more = _keys()[key]
    is_list = get_origin(kind) is list
    of_one = get_args(kind)[0] if is_list else kind
    is_choice = of_one not in _KINDS
    name, types = _KINDS[str if is_choice else of_one]
    values = as_list(value) if is_list else [value]
    if not (values and all(type(one) in types for one in values)):
        several = f" or a list of {name.partition(' ')[2]}s" if is_list else ""
        raise CliError(f"'{path}': {key} must be {name}{several}; got {value!r}.")
    if is_choice and value not in (kind, *more):
        raise CliError(f"'{path}': {key} must be one of {', '.join((kind, *more))}; got {value!r}.")
    if of_one is Path:
        values = [Path(one) if one == "-" else path.parent / one for one in values]
    return values if is_list else values[0]
