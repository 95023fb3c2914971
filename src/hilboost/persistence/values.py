"""Values in model files: JSON values, containers, arrays, and objects of known classes.

Numbers, strings, booleans, ``None`` and lists stand for themselves.  All other values are dicts
with one tag::

    {"tuple": [...]}  {"set": [...]}  {"frozenset": [...]}  {"mapping": [[key, value], ...]}
    {"array": name}                                     an array of the file
    {"kernel": description}                             one of hilboost's kernels
    {"own": name, "values": {...}}                      a component of hilboost, a linear regressor
    {"own": name, "values": null}                       the class of one of hilboost's losses
    {"import": "module:Class", "attributes": {...}}     an object of a user-defined class

For the last tag, only names that the caller trusts are imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.base_model import BaseModel
from hilboost.core.discovery import by_name, classes_in
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, InvalidModelFile, InvalidParameter, InvalidType
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.output_space import Embedding, OutputSpace
from hilboost.core.plain_values import PLAIN, is_class, is_plain
from hilboost.kernels import Kernel, from_description, to_description
from hilboost.learners.kernel_machine.expansion import KernelExpansion, kernel_with
from hilboost.learners.kernel_machine.feature_map import UNBOUNDED, FeatureMap
from hilboost.learners.wrapped import LINEAR_REGRESSORS, is_linear
from hilboost.losses.registry import SCIPY, loss_classes
from hilboost.losses.scipy_distribution import ScipyDistribution
from hilboost.persistence.require import Arrays, require, require_kind, require_list

PARTS = (Loss, Learner, BaseModel, Kernel, OutputSpace, Embedding)
"""Base classes of user-defined classes that model files support."""


@cache
def own_classes() -> Mapping[str, type]:
    """Built-in classes whose objects are supported by model files, by class name."""
    named = [
        (part.__name__, part)
        for package in ("hilboost.learners", "hilboost.losses", "hilboost.outputs")
        for part in classes_in(package, object)
        if vars(part).get("in_files")
    ]
    return by_name([*loss_classes().items(), *named], "components are called")


_CONTAINERS: Mapping[str, Callable[[list[Any]], Any]] = MappingProxyType(
    {"tuple": tuple, "set": set, "frozenset": frozenset}
)
# Parameter names in files of earlier versions.
_RENAMED = {"normalise": "normalize"}
_DEEPEST = 32
PICKLE = "Save such a model with pickle or joblib, and load it only if you trust the file."


class ValueWriter:
    """Writes values, and collects the arrays and class names they need."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.imports: list[str] = []

    def write(self, value: Any, what: str, depth: int = 0) -> Any:
        """Convert a value to JSON."""
        if depth > _DEEPEST:
            raise IncompatibleParts(
                f"model files support at most {_DEEPEST} nested levels; {what} has more. {PICKLE}"
            )
        if isinstance(value, SCIPY):
            value = ScipyDistribution.of(value)
        if isinstance(value, np.generic) and value.dtype.kind in "biufU":
            value = value.item()
        if type(value) in PLAIN:
            return value
        if type(value) in (list, tuple, set, frozenset):
            items = [self.write(item, what, depth + 1) for item in value]
            return items if type(value) is list else {type(value).__name__: items}
        if type(value) is dict:
            pairs = [[self.write(x, what, depth + 1) for x in pair] for pair in value.items()]
            return {"mapping": pairs}
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.itemsize <= 8:
            name = f"value.{len(self.arrays)}"
            self.arrays[name] = np.ascontiguousarray(value)
            return {"array": name}
        if type(value) in own_classes().values() or is_linear(value):
            names = signature(type(value)).parameters
            values = {
                name: self.write(getattr(value, name), f"{name} of {what}", depth + 1)
                for name in names
            }
            return {"own": type(value).__name__, "values": values}
        if isinstance(value, PARTS) and not is_hilboost(type(value)):
            return self._imported(value, what, depth)
        if isinstance(value, Kernel):
            return {"kernel": to_description(value)}
        if is_class(value, Loss):
            if value in loss_classes().values():
                return {"own": value.__name__, "values": None}
            if not is_hilboost(value):
                return {"import": self._named(value), "attributes": None}
        raise IncompatibleParts(
            f"{what} is of type {type(value).__name__}, which model files do not support; they "
            "support numbers, text, hilboost's components that declare in_files = True, and custom "
            f"classes derived from hilboost's base classes. {PICKLE}"
        )

    def _imported(self, value: object, what: str, depth: int) -> Any:
        if any(getattr(cls, "__slots__", ()) for cls in type(value).__mro__):
            raise IncompatibleParts(
                f"model files store the attributes in the __dict__ of an object, but "
                f"{type(value).__name__} ({what}) has __slots__. Define the class without them."
            )
        attributes = {
            name: self.write(item, f"{name} of {type(value).__name__}", depth + 1)
            for name, item in vars(value).items()
        }
        return {"import": self._named(type(value)), "attributes": attributes}

    def _named(self, cls: type) -> str:
        """Return the name by which a class is imported."""
        found: Any = sys.modules.get(cls.__module__)
        for step in cls.__qualname__.split("."):
            found = getattr(found, step, None)
        if found is not cls or cls.__module__ == "__main__":
            raise IncompatibleParts(
                f"model files store the import path of a custom class, but {cls.__qualname__} of "
                f"{cls.__module__} cannot be imported; define it at the top level of an importable "
                "module, or save the model with pickle or joblib, and load it only if you trust "
                "the file."
            )
        name = f"{cls.__module__}:{cls.__qualname__}"
        if name not in self.imports:
            self.imports.append(name)
        return name


def former_features(rotation: Floats | None = None, **values: Any) -> FeatureMap:
    """Create the map that ``Features`` in files of earlier versions stand for."""
    center, missing = values["center"], values["missing"]
    ends = [
        np.append(one, [end] * len(missing))
        for one, end in ((values["low"], -UNBOUNDED), (values["high"], UNBOUNDED), (center, 0.0))
    ]
    with np.errstate(divide="ignore"):
        scale = 1 / np.append(values["scale"], values["missing_scale"])
    low, high, middle = ends
    return FeatureMap(
        values["columns"], values["levels"], center, missing, low, high, middle, scale, rotation
    )


def former_expansion(
    features: FeatureMap, centers: NDArray, weights: Floats, shares: Floats | None = None
) -> KernelExpansion:
    """Create the expansion that ``MetricExpansion`` in files of earlier versions stands for."""
    return KernelExpansion(kernel_with(shares), features, centers, weights, in_float64=True)


# Readers for classes of earlier versions.
_FORMER: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"Features": former_features, "MetricExpansion": former_expansion}
)


def _own(name: str) -> Any:
    if name in LINEAR_REGRESSORS:
        from sklearn import linear_model

        return getattr(linear_model, name)
    return _FORMER[name] if name in _FORMER else own_classes()[name]


def is_hilboost(cls: type) -> bool:
    """Whether a class belongs to this package."""
    return cls.__module__.partition(".")[0] == "hilboost"


class ValueReader:
    """Reads what :class:`ValueWriter` wrote."""

    def __init__(self, arrays: Arrays, trusted: Collection[str] = ()) -> None:
        self._arrays, self._trusted = arrays, frozenset(trusted)
        self._kernels: dict[str, Kernel] = {}

    def read(self, written: object, depth: int = 0) -> Any:
        """Read a value."""
        require(depth <= _DEEPEST, "a value nested too deeply")
        if is_plain(written):
            return written
        if isinstance(written, list):
            return [self.read(item, depth + 1) for item in written]
        written = require_kind(written, dict, "a value")
        if "import" in written:
            require(set(written) == {"import", "attributes"}, "a value")
            return self._imported(written["import"], written["attributes"], depth)
        if "own" in written:
            require(set(written) == {"own", "values"}, "a value")
            name, values = written["own"], written["values"]
            if values is None:
                return loss_classes()[name]
            given: dict[str, Any] = require_kind(values, dict, "a value")
            parts = {_RENAMED.get(key, key): self.read(given[key], depth + 1) for key in given}
            return _own(require_kind(name, str, "a value"))(**parts)
        require(len(written) == 1, "a value")
        ((kind, content),) = written.items()
        if kind == "array":
            require(content in self._arrays and content.startswith("value."), "a value")
            array = self._arrays[content]
            require(array.dtype.kind in "biuf", content)
            return array
        if kind == "kernel":
            return self._kernel(content)
        require(kind in (*_CONTAINERS, "mapping"), "a value")
        items = [self.read(item, depth + 1) for item in require_kind(content, list, "a value")]
        if kind == "mapping":
            return dict(require_list(items, (list,), "a value"))
        return _CONTAINERS[kind](items)

    def _kernel(self, description: object) -> Kernel:
        """Return one object for equal descriptions: learners tell kernels apart by identity."""
        text = json.dumps(description)
        if text not in self._kernels:
            self._kernels[text] = from_description(description)
        return self._kernels[text]

    def part(self, written: object, base: type[Any]) -> Any:
        """Read a value that must be an instance of ``base``."""
        return require_kind(self.read(written), base, f"a {base.__name__}")

    def _imported(self, name: Any, attributes: Any, depth: int) -> Any:
        require_kind(name, str, "the name of a class")
        cls = _import(name, self._trusted)
        if attributes is None:
            return cls
        require_kind(attributes, dict, "attributes")
        made = object.__new__(cls)  # calls no code of the class
        made.__dict__.update({key: self.read(item, depth + 1) for key, item in attributes.items()})
        return made


def _import(name: str, trusted: frozenset[str]) -> Any:
    """Import a user-defined class if its name is trusted."""
    if name not in trusted:
        raise InvalidModelFile(refusal([name]))
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for step in path.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError) as error:
        raise InvalidModelFile(
            f"{name} cannot be imported ({error}); add the folder of its module to sys.path."
        ) from error
    if not is_class(found, PARTS):
        known = ", ".join(part.__name__ for part in PARTS)
        raise InvalidModelFile(
            f"{name} cannot be part of a model, because it is not a subclass of one of {known}."
        )
    return found


def refusal(names: Iterable[str]) -> str:
    """Return the error message for classes that are not trusted."""
    listed = ", ".join(f'"{name}"' for name in names)
    return (
        f"the model uses code that is not in its file: {listed}. If you trust the file and this "
        f"code, load it with trusted=[{listed}]."
    )


def checked_names(trusted: object) -> frozenset[str]:
    """Validate the names that a caller trusts."""
    if isinstance(trusted, str | bytes) or not isinstance(trusted, Collection):
        raise InvalidType(
            f'trusted must be a list of names such as ["my_module:MyLoss"]; got {trusted!r:.60}.'
        )
    for name in trusted:
        module, _, path = name.partition(":") if isinstance(name, str) else ("", "", "")
        if not all(step.isidentifier() for step in (*module.split("."), *path.split("."))):
            raise InvalidParameter(
                f'trusted must contain names such as "my_module:MyLoss"; got {name!r:.60}.'
            )
    return frozenset(trusted)


_TEXT_BYTES = 2**24  # of labels, each of which takes as much memory as the longest


def label_dtype(labels: Any, what: str = "class") -> np.dtype[Any]:
    """The dtype of labels (n,); strings are as long as the longest label."""
    dtype: np.dtype[Any] = labels.dtype
    if dtype.kind != "U" or labels.nbytes <= _TEXT_BYTES:
        return dtype
    shortest: np.dtype[Any] = np.array(labels.tolist()).dtype
    if shortest.itemsize * len(labels) > _TEXT_BYTES:
        raise IncompatibleParts(
            f"model files support {what} labels of at most {_TEXT_BYTES // 2**20} MiB in total; "
            f"these {len(labels)} labels are longer. Use shorter {what} names."
        )
    return shortest


def read_labels(written: object, name: object, what: str) -> Any:
    """Return distinct labels (n,) with the dtype of this name."""
    labels = require_list(written, PLAIN, what)
    dtype = np.dtype(require_kind(name, str, f"{what}_dtype"))
    require(dtype.kind in "biufUO", f"{what}_dtype")
    if dtype.kind == "U":
        require(0 < dtype.itemsize * len(labels) <= _TEXT_BYTES, f"{what}_dtype")
    found = np.array(labels, dtype=dtype)
    require(len(labels) > 0 and len(set(found.tolist())) == len(labels), what)
    return found
