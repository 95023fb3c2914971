"""Commands and options of other libraries, and their counterparts here."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from inspect import signature
from typing import Any

from typer.core import TyperCommand, TyperGroup

from hilboost.cli.errors import raise_usage_error
from hilboost.estimators.peer_names import peers, same_parameters

_USES = {
    "target": "the target column",
    "valid": "validation rows",
    "train": "training rows",
    "versus": "a second model",
    "out": "the output",
}
"""Options that may be meant by an argument too many, and what they are for."""

_WITHOUT_ARGUMENT = {"MODEL": "out", "valid": "TABLE"}
# The meaning of a name for a command without this argument or option.


def option_for(name: str, known: Collection[str]) -> str | None:
    """Return the option, or argument in capitals, with the purpose of another library's option."""
    for one in (name, *same_parameters(name)):
        same = peers("options").get(one, one)
        same = same if same in known else _WITHOUT_ARGUMENT.get(same, same)
        if same in known:
            return same
    return None


def parameter_for(name: str) -> str | None:
    """Return the parameter of the estimators that has this name or purpose."""
    return next((one for one in same_parameters(name) if one in _parameters_of_estimators()), None)


@cache
def _parameters_of_estimators() -> frozenset[str]:
    import hilboost

    estimators = (
        hilboost.BoostingRegressor,
        hilboost.BoostingClassifier,
        hilboost.BoostingRanker,
        hilboost.BoostingSurvival,
        hilboost.KernelBoostingRegressor,
        hilboost.KernelBoostingClassifier,
    )
    return frozenset(name for one in estimators for name in signature(one).parameters)


class Commands(TyperGroup):
    """The commands; an unknown one that other libraries have is answered by the one here."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name."""
        same = peers("commands").get(args[0])
        if same is not None:
            ctx.fail(f"There is no command '{args[0]}'; use 'hilboost {same}'.")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options in front of the command."""
        with _one_line_usage(ctx) if args else nullcontext():  # without arguments, show the help
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _one_line_usage(ctx):
            return super().invoke(ctx)


@contextmanager
def _one_line_usage(ctx: Any) -> Iterator[None]:
    """Print what is wrong with arguments as one line, as other errors, and not in a box."""
    try:
        yield
    except Exception as error:
        # The class of click's error depends on the version of typer, which may bundle click.
        if not hasattr(error, "format_message"):
            raise
        path = f"{ctx.command_path} {ctx.invoked_subcommand or ''}".rstrip()
        raise_usage_error(_sentence(error, path))


def _sentence(error: Any, path: str) -> str:
    """Say what is wrong with the arguments of a command, and where to look, unless this is said."""
    text = " ".join(error.format_message().split())
    text = text.replace(": Value error, ", ": ", 1)  # the prefix of pydantic, which typer uses
    if ";" in text:
        return text
    about = getattr(getattr(error, "param", None), "help", None)
    if about and text.startswith("Missing"):
        text = f"{text.rstrip('.')} ({about[0].lower()}{about[1:].rstrip('.')})"
    return f"{text.rstrip('.')}; see '{path} -h'."


class _Listed(dict[str, str]):
    """Lists of registered names by what they are; each registry is imported when it is asked."""

    def __missing__(self, kind: str) -> str:
        if kind == "formats":
            from hilboost.export.registry import export_formats

            names = sorted(export_formats())
        else:
            from hilboost.losses import registry

            names = sorted(getattr(registry, f"{kind}_losses")())
        return f"{', '.join(names[:-1])} or {names[-1]}"


class Command(TyperCommand):
    """A command whose messages about unknown options and further arguments say what to write.

    Its help lists the names in registries, which are imported only where the command is used.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments."""
        params: list[Any] = super().get_params(ctx)
        for param in params:
            about = getattr(param, "help", None)
            if about and "{" in about:
                param.help = about.format_map(_Listed())
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options and arguments."""
        allowed, ctx.allow_extra_args = ctx.allow_extra_args, True  # they are refused below
        written = list(args)  # parsing empties the list
        try:
            rest = super().parse_args(ctx, args)
        except Exception as error:
            # The class of click's error depends on the version of typer, which may bundle click.
            unknown = getattr(error, "option_name", None)
            instead = None if unknown is None else self._instead(unknown)
            if instead is not None:
                ctx.fail(f"There is no option '{unknown}'; {instead}.")
            raise
        if not ctx.resilient_parsing:
            self._refuse_repeated(ctx, written)
        if ctx.args and not allowed and not ctx.resilient_parsing:
            ctx.fail(self._too_many(ctx.args[0], ctx.command_path))
        return rest

    def _refuse_repeated(self, ctx: Any, written: list[str]) -> None:
        """Reject options given twice that have one value, so that none is dropped."""
        *_, order = self.make_parser(ctx).parse_args(args=written)
        given: Counter[Any] = Counter(order)
        for option, times in given.items():
            if times > 1 and not option.multiple and (not option.is_flag or option.secondary_opts):
                flag = max(option.opts, key=len)
                several = ", with several columns as FIRST,SECOND" if flag == "--target" else ""
                ctx.fail(f"{flag} was given {times} times; give it once{several}.")

    def _too_many(self, written: str, command: str) -> str:
        """Return the message about an argument after the last one that the command takes."""
        taken = [str(one.metavar) for one in self.params if one.param_type_name == "argument"]
        known = {_key(flag) for one in self.params for flag in one.opts}
        hints = [f"--{name} for {use}" for name, use in _USES.items() if name in known]
        instead = f"; use {', '.join(hints)}" if hints else ""
        return (
            f"'{command}' takes {' '.join(taken) or 'no files'}, but got '{written}', too{instead}."
        )

    def _instead(self, written: str) -> str | None:
        """Return what to write instead of an unknown option, if it has a purpose here."""
        options = {flag for one in self.params for flag in (*one.opts, *one.secondary_opts)}
        name = written.lstrip("-").replace("-", "_")
        if written in options:
            return None
        known = {_key(flag) for flag in options} | {str(one.metavar) for one in self.params}
        same = option_for(name, known)
        if same is not None and same.isupper():
            return f"write the file {same} without an option"
        if same is not None:
            return f"use --{same.replace('_', '-')}"
        if peers("options").get(name, name) == "dates":
            return "the model expands its dates itself"
        parameter = parameter_for(name) if "set" in known else None
        return None if parameter is None else f"use --set {parameter}=VALUE"


def _key(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")
