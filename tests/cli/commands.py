"""Commands run in this process, and the one line with which they refuse."""

from typer.testing import CliRunner

from hilboost.cli.app import app


def run(*arguments, **given):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **given)


def passed(*arguments, **given):
    """The result of a command that succeeds."""
    result = run(*arguments, **given)
    assert result.exit_code == 0, result.output
    return result


def done(*arguments, **given):
    """Standard output of a command that succeeds."""
    return passed(*arguments, **given).stdout


def refused(*arguments, code=1):
    """The only line on standard error beside notes."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert "Traceback" not in result.output
    return lines[0]
