"""Public docstrings are numpydoc: every parameter, return value and error is there."""

import ast
import builtins
import dataclasses
import inspect
import textwrap
from functools import cached_property
from importlib import import_module

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

from hilboost.core import errors

ROOMS = (
    "hilboost",
    "hilboost.callbacks",
    "hilboost.core.errors",
    *(f"hilboost.core.{name}" for name in ("base_model", "callback", "fitted_term", "gradients")),
    *(f"hilboost.core.{name}" for name in ("learner", "loss", "loss_kinds")),
    *(f"hilboost.core.{name}" for name in ("metric", "output_space")),
    *(f"hilboost.core.{name}" for name in ("capabilities", "row_sample", "rule", "target")),
    "hilboost.estimators",
    "hilboost.export",
    "hilboost.kernels",
    "hilboost.losses",
    "hilboost.metrics",
    "hilboost.network",
    "hilboost.outputs",
    "hilboost.report",
    "hilboost.testing",
)
WANTED = {
    "GL06",  # an unknown section
    "GL07",  # sections in another order
    "GL08",  # no docstring
    "SS01",  # no summary
    "PR01",  # parameters that are not documented
    "PR02",  # documented parameters that are not there
    "PR03",  # in another order
    "PR04",  # without a type
    "RT01",  # no section of return values
    "YD01",  # nor of yielded ones
}
SECTIONS = ("Parameters", "Returns", "Yields", "Raises")


def public_names(module):
    """``__all__``, or what a module without one defines itself."""
    own = (
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )
    return getattr(module, "__all__", own)


def public_objects():
    """Every public class and function, once."""
    found = {}
    for room in ROOMS:
        module = import_module(room)
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def definitions(cls, name):
    """Where classes of the package define a member, the class itself first."""
    return [
        base
        for base in cls.__mro__
        if name in vars(base) and base.__module__.startswith("hilboost")
    ]


def has_sections(base, name):
    text = inspect.cleandoc(_function(vars(base)[name]).__doc__ or "")
    document = NumpyDocString(text)
    return any(document[section] for section in SECTIONS)


def _function(member):
    if isinstance(member, property):
        return member.fget
    if isinstance(member, cached_property):
        return member.func
    return getattr(member, "__func__", member)


def members():
    """Public methods and properties of public classes, with all their definitions."""
    for value in filter(inspect.isclass, PUBLIC.values()):
        for name in dir(value):
            bases = [] if name.startswith("_") else definitions(value, name)
            if bases and callable(_function(vars(bases[0])[name])):
                yield name, bases


def documented():
    """Dotted names to validate: classes, functions, and members where their sections stand.

    A method that keeps a contract says what is special to it; its parameters are described by the
    contract, in a base class.
    """
    names = dict(PUBLIC)
    for name, bases in members():
        home = next((base for base in bases if has_sections(base, name)), bases[0])
        names[f"{home.__module__}.{home.__qualname__}.{name}"] = vars(home)[name]
    return names


PUBLIC = public_objects()


def test_the_public_interface_is_looked_at():
    names = documented()
    assert len(names) > 200
    assert "hilboost.estimators.base.BoostingEstimator.fit" in names


def is_well_documented(value, code):
    """What numpydoc does not know: generators passed on, records, and protocols."""
    text = NumpyDocString(inspect.cleandoc(_function(value).__doc__ or ""))
    if code == "RT01":
        return bool(text["Yields"])
    if code == "PR01" and dataclasses.is_dataclass(value):
        entries = text["Attributes"] + text["Parameters"]
        listed = {name.strip() for entry in entries for name in entry.name.split(",")}
        return {field.name for field in dataclasses.fields(value)} <= listed
    return code == "PR01" and getattr(value, "_is_protocol", False)


@pytest.mark.slow
def test_docstrings():
    found = [
        (name, *error)
        for name, value in documented().items()
        for error in validate(name)["errors"]
        if error[0] in WANTED and not is_well_documented(value, error[0])
    ]
    assert not found


def raised(function):
    """Names of the errors that the body itself raises."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise))
    named = (call.func for call in calls if isinstance(call, ast.Call))
    return {func.id for func in named if isinstance(func, ast.Name)}


def kinds(name, function):
    """The error's own name and those of what it is a kind of."""
    if name == "unknown_name":
        name = "InvalidParameter"
    error = getattr(errors, name, None) or function.__globals__.get(name) or getattr(builtins, name)
    return {kind.__name__ for kind in error.__mro__} - {"Exception", "BaseException", "object"}


def listed(functions):
    """Errors in the sections "Raises" of a method and of the contracts it keeps."""
    texts = (NumpyDocString(inspect.cleandoc(function.__doc__ or "")) for function in functions)
    entries = (entry.type or entry.name for text in texts for entry in text["Raises"])
    return {kind.strip() for entry in entries for kind in entry.split(",")}


def bodies():
    """Functions that may raise, with those whose docstrings may say so."""
    for path, value in PUBLIC.items():
        if inspect.isfunction(value):
            yield path, [value]
    for name, bases in members():
        functions = [inspect.unwrap(_function(vars(base)[name])) for base in bases]
        yield f"{bases[0].__qualname__}.{name}", functions


def test_errors_are_documented():
    missing = []
    for path, functions in dict(bodies()).items():
        said = listed(functions)
        names = raised(functions[0])
        missing += [(path, name) for name in names if not said & kinds(name, functions[0])]
    assert not missing
