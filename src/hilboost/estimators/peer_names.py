"""Names in other libraries, listed in ``peers.toml``, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from hilboost.core.discovery import by_word


@cache
def _tables() -> dict[str, Any]:
    import tomllib  # only messages read the tables
    from importlib.resources import files

    text = files("hilboost.estimators").joinpath("peers.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def peers(section: str) -> dict[str, str]:
    """Return what is meant by each name in a section of ``peers.toml``."""
    return by_word(_tables()[section])


def same_loss(name: str, known: Collection[str]) -> str | None:
    """Return the name of a loss that another library calls ``name``, if it is one of ``known``."""
    plain = re.sub("^(reg|binary|multi|count|rank|survival):", "", name.lower())
    candidates = plain, peers("losses").get(plain)
    return next((one for one in candidates if one in known), None)


def same_parameters(name: str) -> list[str]:
    """Return the parameters or arguments of ``fit`` with the purpose of another library's."""
    return re.split(" or | and ", peers("parameters").get(name, name))


def advice(
    name: str,
    parameters: Collection[str],
    of_fit: Collection[str],
    caller: str,
    others: Sequence[str] = (),
) -> str:
    """Say what to pass instead of an unknown argument, as the end of a sentence; empty if unknown.

    ``others`` are calls of estimators that have the parameter.
    """
    same = same_parameters(name)
    for known, told in (parameters, f"set {{}} in {caller}(...)"), (of_fit, "pass {} to fit"):
        own = [one for one in same if one in known]
        if own:
            conjunction = " and " if " and " in peers("parameters").get(name, "") else " or "
            return told.format(conjunction.join(own))
    for one in _tables()["answers"]:
        if name in one["names"].split() and one["needs"] in (*parameters, *of_fit):
            return str(one["answer"])
    if others:
        return f"use {' or '.join(others[:2])}"
    near = get_close_matches(name, [*parameters, *of_fit], n=3, cutoff=0.7)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""
