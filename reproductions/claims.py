"""Claim files, which describe the published results to reproduce."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilboost.cli.errors import CliError
from hilboost.core.errors import unknown_name

__all__ = ["Claim", "Value", "claim_named", "function_of", "read_claims"]


@dataclass(frozen=True)
class Value:
    """One published number."""

    name: str
    published: float
    tolerance: float = 0.0  # maximum difference of a reproduced value
    deviation: float | None = None  # published standard deviation
    better: str = ""  # direction in which a difference is an improvement
    missing: str = ""  # why the value cannot be measured; empty if it can


@dataclass(frozen=True)
class Claim:
    """A published result, and how to measure it."""

    key: str
    source: str
    where: str
    title: str
    measure: str
    protocol: str
    function: str  # name of the function in ``measure.py`` next to the claim file
    runs: int  # published number of runs
    minutes: float  # duration of all runs on two cores
    values: tuple[Value, ...]
    path: Path


def read_claims(folder: Path) -> list[Claim]:
    """Read all claims, sorted by source and key."""
    claims = []
    for path in sorted(folder.glob("*/*.toml")):
        try:
            fields = tomllib.loads(path.read_text(encoding="utf-8"))
            values = tuple(Value(**value) for value in fields.pop("values"))
            claims.append(Claim(**fields, values=values, path=path))
        except (KeyError, TypeError, tomllib.TOMLDecodeError) as error:
            raise CliError(f"{path} is not a valid claim file: {error}.") from error
    return claims


def claim_named(key: str, claims: list[Claim]) -> Claim:
    """Return the claim with this key."""
    for claim in claims:
        if claim.key == key:
            return claim
    raise unknown_name("KEY", key, [claim.key for claim in claims])


@contextmanager
def function_of(claim: Claim) -> Iterator[Callable[..., dict[str, Any]]]:
    """Load the function that measures a claim, with benchmarks and tests importable."""
    root = claim.path.parents[2]
    spec = importlib.util.spec_from_file_location(
        f"reproduce_{claim.path.parent.name}", claim.path.parent / "measure.py"
    )
    if spec is None or spec.loader is None:
        raise CliError(
            f"{claim.path.parent / 'measure.py'} cannot be read; restore it from the repository."
        )
    before = list(sys.path)
    sys.path[:0] = [str(root / "benchmarks"), str(root)]
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield getattr(module, claim.function)
    finally:
        sys.path[:] = before
