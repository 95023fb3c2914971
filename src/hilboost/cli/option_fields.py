"""Options of commands as fields of records."""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, field, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

from typer import Argument, Option

from hilboost.cli.errors import one_line_errors

Debug = Annotated[bool, Option("--debug", help="Show the full traceback of errors.")]


def option(metavar: str, about: str, names: str = "", default: Any = None, **more: Any) -> Any:
    """Declare a field that is an option, required if its default is ``MISSING``."""
    return _declared(Option(*names.split(), metavar=metavar, help=about, **more), default)


def several(metavar: str, about: str, names: str = "") -> Any:
    """Declare a field that is an option with a list of values."""
    return option(metavar, f"{about}; repeatable.", names, default=[])


def flag(about: str, name: str, default: bool = False) -> Any:
    """Declare a field that is an option without a value."""
    return _declared(Option(name, help=about), default)


def argument(metavar: str, about: str, default: Any = MISSING) -> Any:
    """Declare a field that is an argument, required by default."""
    return _declared(Argument(metavar=metavar, help=about, show_default=False), default)


def record() -> Any:
    """Declare a required field that is a record."""
    return field()


def _declared(about: object, default: Any) -> Any:
    known: dict[str, Any] = {"default_factory": list} if default == [] else {"default": default}
    return field(metadata={"about": about}, **known)


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a function --debug, errors of one line, and options for the fields of records."""
    kinds = get_type_hints(function, include_extras=True)
    parameters = [
        parameter.replace(annotation=kinds[name])
        for name, parameter in signature(function).parameters.items()
    ]

    def command(**given: Any) -> None:
        with one_line_errors(given["debug"]):
            function(**{one.name: _value(one.annotation, one.name, given) for one in parameters})

    debug = Parameter("debug", Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
    options = [option for parameter in (*parameters, debug) for option in _options(parameter)]
    command.__signature__ = Signature(options)  # type: ignore[attr-defined]
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    return command


def _options(parameter: Parameter) -> Iterator[Parameter]:
    """Yield a parameter, or one for each field of a record."""
    if not is_dataclass(parameter.annotation):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    for one, kind in _fields(parameter.annotation):
        default = None if one.default is MISSING else one.default
        if one.default is MISSING and one.default_factory is MISSING:
            default = Parameter.empty  # the option is required
        yield from _options(
            Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        )


def _fields(record: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the fields of a record that are options or records, with their types."""
    kinds = get_type_hints(record)
    for one in fields(record):
        kind = kinds[one.name]
        if one.metadata:
            yield one, Annotated[kind, one.metadata["about"]]
        elif is_dataclass(kind):
            yield one, kind


def _value(kind: object, name: str, given: dict[str, Any]) -> Any:
    return record_of(kind, given) if is_dataclass(kind) else given.get(name)


def record_of(record: Any, given: dict[str, Any]) -> Any:
    """Create a record from the options that are given: neither ``None`` nor an empty list."""
    values = {one.name: _value(kind, one.name, given) for one, kind in _fields(record)}
    return record(**{name: value for name, value in values.items() if value not in (None, [])})
