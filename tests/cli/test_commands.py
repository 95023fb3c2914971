"""`hilboost` itself, and `demo`."""

import importlib.metadata
import re
import sys
import warnings

import pytest
from tests.cli.commands import passed, run
from typer.main import get_command
from typer.testing import CliRunner

from hilboost.cli.app import app
from hilboost.cli.errors import one_line_errors
from hilboost.core.errors import CacheWarning
from hilboost.estimators.peer_names import peers
from hilboost.export.registry import export_formats
from hilboost.losses.registry import (
    classification_losses,
    ranking_losses,
    regression_losses,
    survival_losses,
)

PICTURES = {"images_completed.png", "intervals.png", "outliers.png"}


def in_words(names):
    *others, last = sorted(names)
    return f"{', '.join(others)} or {last}"


@pytest.mark.parametrize("command", ["", *get_command(app).commands])
def test_help(command):
    result = passed(*command.split(), "--help")
    assert "Usage: hilboost" in result.output
    if command != "warmup":
        assert "Examples" in result.output


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("fit", regression_losses),
        ("fit", classification_losses),
        ("fit", ranking_losses),
        ("fit", survival_losses),
        ("export", export_formats),
    ],
)
def test_help_lists_all_registered_names(command, names):
    told = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "300"}).output
    assert all(name in told for name in names())
    assert not re.search("{[a-z]", told)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train houses.csv", "no command 'train'; use 'hilboost fit'."),
        ("score houses.model sold.csv", "no command 'score'; use 'hilboost evaluate'."),
        ("fit houses.csv --label price", "no option '--label'; use --target."),
        ("fit houses.csv --exposure years", "no option '--exposure'; use --offset."),
        ("fit houses.csv --objective=mae", "no option '--objective'; use --loss."),
        ("fit houses.csv --n_estimators 9", "no option '--n_estimators'; use --n-estimators."),
        ("fit --num-leaves 9", "no option '--num-leaves'; use --set max_leaf_nodes=VALUE."),
        ("fit --max-depth 3", "no option '--max-depth'; use --set max_depth=VALUE."),
        ("fit --nthread 2", "no option '--nthread'; use --threads."),
        ("fit --test sold.csv", "no option '--test'; use --valid."),
        ("predict --model houses.model", "no option '--model'; write the file MODEL without"),
        ("report houses.model sold.csv --label price", "no option '--label'; use --target."),
        ("predict houses.model new.csv --dates expand", "the model expands its dates itself."),
        # no advice
        ("predict houses.model new.csv prices.csv", "unexpected extra argument"),
        ("fit --loss", "Option '--loss' requires an argument; see 'hilboost fit -h'."),
        ("predict houses.model new.csv --num-leaves 9", "No such option: --num-leaves; see 'hil"),
        ("fit --target", "Option '--target' requires an argument; see 'hilboost fit -h'."),
        ("fit --n-estimators many", "Invalid value for '--n-estimators'"),
        ("fit --family forest", "for '--family': 'forest' is not one of 'tree', 'kernel'; see"),
        ("export houses.model", f"'--format' ({in_words(export_formats())}); see 'hilboost export"),
        ("predict", "'MODEL' (model file written by hilboost fit); see 'hilboost predict -h'."),
        ("polish houses.csv", "No such command 'polish'; see 'hilboost -h'."),
        ("--polish", "No such option: --polish; see 'hilboost -h'."),
    ],
)
def test_names_of_other_libraries_are_answered_by_those_here(words, message):
    result = run(*words.split())
    assert result.exit_code == 2
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    assert message in result.output


def test_the_advice_names_existing_commands_options_and_parameters():
    commands = get_command(app).commands
    options = {flag for one in commands.values() for p in one.params for flag in p.opts}
    names = {flag.lstrip("-").replace("-", "_") for flag in options}
    assert set(peers("commands").values()) <= commands.keys()
    assert not peers("commands").keys() & commands.keys()
    assert set(peers("options").values()) <= names | {"MODEL", "TABLE"}


def test_version():
    found = [one.version for one in importlib.metadata.distributions(name="hilboost")]
    assert run("--version").output == f"hilboost {[*found, '(not installed)'][0]}\n"


@pytest.mark.slow
def test_demo_writes_its_pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # one process that looks for compiled code
    folder = tmp_path / "pictures"
    result = passed("demo", "--quick", "--out", str(folder))
    assert {path.name for path in folder.iterdir()} == PICTURES
    for path in folder.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
    for words in ("digits", "smooth function", "diabetes", "scikit-learn", "Images as targets"):
        assert words in result.stdout
    scores = re.findall(r"(log-loss|R²) +│ +([\d.]+)", result.stdout)
    assert [name for name, _ in scores] == ["log-loss", "log-loss", "R²", "R²"]
    losses, shares = ([float(v) for n, v in scores if n == name] for name in ("log-loss", "R²"))
    assert losses[0] < losses[1]
    assert shares[0] > shares[1]
    inside = [float(share) for share in re.findall(r"([\d.]+) % │", result.stdout)]
    distances = [abs(share - 90) for share in inside]
    assert len(distances) == 4
    assert all(ours < theirs for ours, theirs in zip(distances[::2], distances[1::2], strict=True))
    # No terminal, no bar.
    assert result.stderr == ""


def test_demo_refuses_a_file_as_folder(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("demo", "--out", str(tmp_path / "file"))
    assert result.exit_code == 1
    assert "is a file; choose a folder" in result.stderr


def test_the_command_module_imports_nothing_heavy():
    # By source, not in a new process: the test session itself has imported everything.
    source = sys.modules["hilboost.cli.app"].__file__
    with open(source, encoding="utf-8") as file:
        top = [line for line in file if line.startswith(("import ", "from "))]
    assert not any(name in line for line in top for name in ("pandas", "matplotlib", "sklearn"))


def test_a_cache_that_cannot_be_written_is_a_note(capsys):
    with one_line_errors(debug=False):
        warnings.warn("Compiled code cannot be cached.", CacheWarning, stacklevel=1)
    assert capsys.readouterr().err == "note: Compiled code cannot be cached.\n"
