"""Options of ``hilboost fit`` in TOML files, and parameters of the estimator."""

import ast
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from typer import Context

from hilboost.cli.errors import CliError

_PATHS = ("table", "out", "valid")


def use_config(ctx: Context, path: Path | None) -> Path | None:
    """Let a TOML file give the options that the command line does not.

    Its keys are options with "-" or "_", and ``set``, a table of parameters of the estimator.
    """
    if path is None or ctx.resilient_parsing:
        return path

    from hilboost.core.disk import unusable
    from hilboost.core.plain_values import as_list

    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        ctx.fail(str(unusable(path, error, "read")))
    except ValueError as error:
        ctx.fail(f"'{path}' is not a valid TOML file: {error}.")
    if not isinstance(found.pop("set", {}), dict):
        ctx.fail(f"'{path}': set must be a table of parameters, [set].")
    command: Any = ctx.command
    known = {one.name: one for one in command.params if one.name not in ("config", "settings")}
    options: dict[str, Any] = {}
    for written, value in found.items():
        key = written.replace("-", "_")
        if key in options:
            ctx.fail(f"'{path}' sets '{key}' twice; set it only once.")
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = command.instead(key) or (f"did you mean '{near[0]}'?" if near else "remove it.")
            ctx.fail(f"'{path}' has the unknown key '{written}'; {hint}")
        values = as_list(value)
        # as text, which the option converts
        texts = [
            str(path.parent / str(one) if key in _PATHS and one != "-" else one) for one in values
        ]
        options[key] = texts if getattr(known[key], "multiple", False) else ",".join(texts)
    ctx.default_map = options
    return path


def parameters(config: Path | None, texts: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of a TOML file and of ``--set NAME=VALUE``, which wins."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise CliError(f"--set requires name=value, such as --set max_depth=4; got '{text}'.")
        if name in found:
            raise CliError(f"--set sets '{name}' twice; set it only once.")
        found[name] = _literal(value.strip())
    table = {} if config is None else tomllib.loads(config.read_text("utf-8")).get("set", {})
    return {name.replace("-", "_"): value for name, value in table.items()} | found


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
