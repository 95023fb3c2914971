"""Commands and options of other libraries, and their counterparts here."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from inspect import signature
from typing import Any

from typer.core import TyperCommand, TyperGroup

from hilboost.cli.errors import raise_usage_error
from hilboost.estimators.peer_names import peers, same_parameters


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
    """A command that says what to write instead of an unknown option.

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
        written = list(args)  # parsing empties the list
        try:
            rest = super().parse_args(ctx, args)
        except Exception as error:
            # The class of click's error depends on the version of typer, which may bundle click.
            unknown = getattr(error, "option_name", None)
            instead = None if unknown is None else self.instead(unknown)
            if instead is not None:
                ctx.fail(f"There is no option '{unknown}'; {instead}")
            raise
        if not ctx.resilient_parsing:
            self._refuse_repeated(ctx, written)
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

    def instead(self, written: str) -> str | None:
        """Say what to write instead of an option that does not exist but has a purpose here."""
        flags = [flag for one in self.params for flag in (*one.opts, *one.secondary_opts)]
        if written in flags:  # without its value
            return None
        known = {flag.lstrip("-").replace("-", "_") for flag in flags}
        known |= {str(one.metavar) for one in self.params}
        name = written.lstrip("-").replace("-", "_")
        meant = [peers("options").get(one, one) for one in (name, *same_parameters(name))]
        same = next((one for one in meant if one in known), None)
        if same is not None:
            option = f"--{same.replace('_', '-')}"
            return (
                f"write the file {same} without an option." if same.isupper() else f"use {option}."
            )
        if "dates" in meant:
            return "the model expands its dates itself."
        found = [one for one in same_parameters(name) if "set" in known and _is_parameter(one)]
        return f"use --set {found[0]}=VALUE." if found else None


def _is_parameter(name: str) -> bool:
    import hilboost

    models = hilboost.BoostingRegressor, hilboost.KernelBoostingRegressor
    return any(name in signature(model).parameters for model in models)
