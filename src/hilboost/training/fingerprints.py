"""Fingerprints of parameters and arrays, by which fits are compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from hilboost.core.errors import InvalidData, InvalidModelFile, InvalidParameter
from hilboost.core.exchange import RowShare
from hilboost.core.plain_values import all_text, as_python, is_plain
from hilboost.core.target import Target
from hilboost.core.version import ROW_DRAWS, __version__
from hilboost.persistence.require import require_kind
from hilboost.reductions.rows import whole_dependence
from hilboost.tables.blocks import DenseTable
from hilboost.tables.files import FileTable
from hilboost.tables.sparse import SparseTable
from hilboost.training.data import TrainingData
from hilboost.training.recipe import Recipe

# These do not change the model, or are represented by the seed.
_WITHOUT_EFFECT = ("n_jobs", "verbose", "warm_start", "random_state")
_WAYS_OUT = (
    "To resume, repeat the original fit. To start a new fit, use another path, or set "
    "resume=False, which replaces the file."
)


def plain_value(name: str, value: Any) -> Any:
    """Return the value of a parameter for JSON; other objects as their type and hash."""
    value = as_python(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain_value(name, one) for one in value]
    if is_plain(value):
        return value
    kind = value if isinstance(value, type) else type(value)
    try:
        return f"{kind.__module__}.{kind.__qualname__} {joblib.hash(value)}"
    except Exception as error:  # pickling a user's object may raise anything
        raise InvalidParameter(
            f"Checkpoint and warm_start identify fits by their parameters, but {name}={value!r} "
            f"cannot be hashed ({error}); define its class and functions at the top level of a "
            "module."
        ) from error


def fingerprint(
    array: np.ndarray | DenseTable | FileTable | SparseTable | None, share: RowShare | None = None
) -> str:
    """Hash an array; cost O(size), one or two seconds per gigabyte.

    If other workers have other rows of the array, the hash is that of all rows, and does not depend
    on their division.
    """
    if array is None:
        return "none"
    if share is not None:
        hashes = share.exchange.sum(_sums_of_hashes(np.asarray(array), share.numbers))
        size = "x".join(map(str, (share.n_rows, *np.shape(array)[1:])))
        return f"{size} {np.asarray(array).dtype} in parts {digest([hashes.tobytes()])}"
    if isinstance(array, SparseTable):
        d = array.shape[1]
        return f"sparse {d} " + " ".join(fingerprint(part) for part in array.arrays)
    if isinstance(array, DenseTable | FileTable):
        columns = np.arange(array.shape[1])
        blocks: Iterable[np.ndarray] = (block for _, block in array.row_blocks(columns))
    else:
        blocks = [array]
    content = (np.ascontiguousarray(block).reshape(-1).view(np.uint8).data for block in blocks)
    return f"{'x'.join(map(str, array.shape))} {array.dtype} {digest(content)}"


def digest(parts: Iterable[bytes | memoryview]) -> str:
    """Hash bytes, given in parts."""
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.hexdigest()


def _sums_of_hashes(array: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Sums, modulo 2**64, of two hashes of each row (n, ...) and its number, (2,) int64."""
    if not len(array):
        return np.zeros(2, dtype=np.int64)
    cells = np.ascontiguousarray(array).reshape(len(array), -1)
    cells = cells.view(f"u{cells.dtype.itemsize}")
    found = []
    for factor in (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)):
        state = _mixed(numbers.astype(np.uint64) + factor, factor)
        for column in cells.T:
            state = _mixed(state ^ column, factor)
        found.append(state.sum(dtype=np.uint64))
    return np.array(found).view(np.int64)


def _mixed(state: np.ndarray, factor: np.uint64) -> np.ndarray:
    state = (state ^ (state >> np.uint64(32))) * factor
    return state ^ (state >> np.uint64(29))


@dataclass(frozen=True)
class FitFingerprint:
    """The identity of a fit: two fits with the same fingerprint result in the same model."""

    parameters: dict[str, Any]  # values that are not plain are represented by their type and hash
    # shape, dtype and hash of every array; ``"none"`` for arrays that were not given
    data: dict[str, str]
    seed: int | None  # ``None`` if no seed was given, so that any seed matches
    version: str
    row_draws: int

    @classmethod
    def of(cls, parameters: dict[str, Any], data: TrainingData | None, seed: int) -> FitFingerprint:
        """Compute the fingerprint of an estimator's parameters and validated data.

        Without data, only the parameters are compared.
        """
        kept = {name: value for name, value in parameters.items() if name not in _WITHOUT_EFFECT}
        return cls(
            {name: plain_value(name, value) for name, value in kept.items()},
            {} if data is None else _of_data(data),
            None if parameters["random_state"] is None else seed,
            __version__,
            ROW_DRAWS,
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert everything but the seed to plain values."""
        return {name: value for name, value in vars(self).items() if name != "seed"}

    @classmethod
    def from_dict(cls, header: dict[str, Any]) -> FitFingerprint:
        """Read what :meth:`to_dict` wrote, beside the seed of the fit."""
        parameters, data = header["parameters"], header["data"]
        require_kind(parameters, dict, "parameters")
        require_kind(data, dict, "data")
        row_draws = header.get("row_draws", 1)  # the first version was not noted
        return cls(parameters, data, header["seed"], header["version"], row_draws)

    def check(self, path: Path, stored: FitFingerprint) -> None:
        """Reject the file of another fit and name the differences."""
        if stored.version != self.version:
            raise InvalidModelFile(
                f"{path} was written by hilboost {stored.version}, and version {self.version} "
                f"may round differently. {_WAYS_OUT}"
            )
        if stored.row_draws != self.row_draws:
            raise InvalidModelFile(
                f"{path} was written by another build of hilboost {self.version}, which draws "
                f"other rows at random. {_WAYS_OUT}"
            )
        for name in sorted(stored.parameters.keys() | self.parameters.keys()):
            old, new = stored.parameters.get(name), self.parameters.get(name)
            if old != new:
                raise InvalidParameter(
                    f"{path} is the checkpoint of a fit with {_difference(name, old, new)}. "
                    f"{_WAYS_OUT}"
                )
        if self.seed is not None and self.seed != stored.seed:
            raise InvalidParameter(
                f"{path} is the checkpoint of a fit with a different random_state. {_WAYS_OUT}"
            )
        theirs = stored.data
        # Fits on several workers have no fingerprints of data.
        names = [*self.data, *(name for name in theirs if self.data and name not in self.data)]
        others = [name for name in names if theirs.get(name, "none") != self.data.get(name, "none")]
        if others:
            raise InvalidData(
                f"{path} is the checkpoint of a fit to different data ({', '.join(others)}). "
                f"{_WAYS_OUT}"
            )


def _difference(name: str, old: Any, new: Any) -> str:
    """Say how a parameter differs; objects are the name of their class and a hash."""
    if all_text((old, new)):
        of_class, _, digest_of_old = old.partition(" ")
        if digest_of_old and new.startswith(f"{of_class} "):
            return f"other attributes of {name}={of_class}"
    return f"{name}={old!r}, but this fit has {name}={new!r}"


def _of_data(data: TrainingData) -> dict[str, str]:
    """Fingerprints of the arrays."""
    found = _of_rows(data.X, data.target)
    found["positions"] = fingerprint(data.target.positions, data.target.share)
    found |= of_dependence(data.target)
    found |= _of_rows(None, None, "_val")
    for one in data.validation:
        found |= _of_rows(one.X, one.target, f"_val[{one.name!r}]" if one.name else "_val")
    levels = data.schema.levels
    return found | {"levels": digest([repr(levels).encode()]) if levels else "none"}


def of_dependence(target: Target) -> dict[str, str]:
    """Fingerprints of what decides which rows, of all workers, are held out together."""
    found = whole_dependence(target)
    if found is None:
        return {}
    arrays = zip(("groups", "time", "validation"), found.arrays, strict=True)
    return {name: fingerprint(array) for name, array in arrays if array is not None}


def _of_rows(X: Any, target: Target | None, suffix: str = "") -> dict[str, str]:
    """Fingerprints of rows and what belongs to them, by the names of the arguments of ``fit``."""
    fields = {"y": "y", "sample_weight": "weight", "groups": "groups", "offset": "offset"}
    arrays = {"X": X} | {name: getattr(target, field, None) for name, field in fields.items()}
    share = None if target is None else target.share
    return {f"{name}{suffix}": fingerprint(array, share) for name, array in arrays.items()}


def ingredients(recipe: Recipe) -> dict[str, str]:
    """Hash what the state of a fit depends on: the learner, the loss, and the data."""
    target = recipe.data.target
    return {
        "learner": str(plain_value("learner", recipe.config.learner)),
        "loss": str(plain_value("loss", (recipe.config.loss, recipe.config.units))),
        "X": fingerprint(recipe.data.X),
        "y": fingerprint(target.y.astype(np.float64, copy=False)),
        "sample_weight": fingerprint(target.weight),
        **of_dependence(target),
    }


def ingredients_of_state(recipe: Recipe) -> dict[str, str] | None:
    """Return :func:`ingredients`, or ``None`` if a fit is continued without its state."""
    capabilities = recipe.config.learner.capabilities
    if capabilities.resumable:
        return None
    try:
        return ingredients(recipe)
    except InvalidParameter:
        if capabilities.has_state:
            raise
        return None
