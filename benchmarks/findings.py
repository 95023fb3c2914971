# ruff: noqa: E501
"""Run the tests of findings of everyday use on a revision before these were mended.

``python benchmarks/findings.py`` checks out revision 61eb3f0 into a temporary folder, replaces its
tests by those of today, and runs the tests below: a test that passes there does not show what was
found.  Imports of names that the revision does not have give a placeholder, so that only tests that
use such a name fail for this reason.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from _common import RESULTS, ROOT, write_json

REVISION = "61eb3f0"
MESSAGES, BEGINNERS = "estimators/test_messages.py", "cli/test_tables_of_beginners.py"
SHAP, REPORT = "estimators/test_shapley.py", "report/test_weights_and_drift.py"
FINDINGS = {
    "the first compilation is silent": "backends/test_compiled.py::test_a_long_compilation_is_said_once",
    "no recipe compiles in a container image": "backends/test_compiled.py::test_code_compiled_for_a_family_of_processors",
    "no Shapley values": f"{SHAP}::test_values_add_up[tree]",
    "no Shapley values of kernel machines": f"{SHAP}::test_values_add_up[kernel]",
    "no Shapley values of encoded categories": f"{SHAP}::test_categories_belong_to_their_own_columns",
    "no Shapley values of several classes": f"{SHAP}::test_several_classes",
    "no Shapley values of mixtures": f"{SHAP}::test_trees_beside_a_kernel_machine",
    "no plots by shap": f"{SHAP}::test_the_package_shap_agrees_and_plots",
    "no Shapley interactions": f"{SHAP}::test_only_columns_of_a_tree_together_interact",
    "several quantiles have no score": f"{MESSAGES}::test_several_quantiles_have_a_score",
    "no searches over several quantiles": f"{MESSAGES}::test_searches_over_models_of_several_quantiles",
    "no staged_decision_function": "estimators/test_fitting.py::test_staged_probabilities_are_arrays_of_their_own",
    "early stopping cannot watch the training loss": "boosting/test_stopping.py::test_without_a_validation_fraction_the_training_loss_decides",
    "early stopping cannot watch a metric": "metrics/test_metrics.py::test_all_metrics_are_recorded_and_the_first_one_stops",
    "a single class is refused": "estimators/test_one_class.py::test_the_class_is_learnt_as_a_constant",
    "infinity is refused": "estimators/test_infinity.py::test_trees_tell_infinity_from_all_finite_values",
    "no loss as a plain function": "losses/test_from_function.py::test_models_are_those_of_the_class",
    "Gradients are not at top level": "test_everyday.py::test_gradients_are_at_top_level",
    "no loss objects of scikit-learn": "estimators/test_losses_of_scikit_learn.py::test_numbers",
    "a loaded model is not continued": "model/test_continued_files.py::test_a_fit_in_two_parts_is_a_whole_one",
    "leaves are not fitted to new rows": "estimators/test_refit_leaves.py::test_new_rows_move_the_predictions",
    "semicolons in tables": f"{BEGINNERS}::test_other_separators_are_detected",
    "decimal commas": f"{BEGINNERS}::test_decimal_commas_are_detected",
    "encodings of tables": f"{BEGINNERS}::test_encodings",
    "columns that number the rows": f"{BEGINNERS}::test_columns_that_number_the_rows",
    "rows without target": f"{BEGINNERS}::test_rows_without_target",
    "a target with decimal commas": f"{BEGINNERS}::test_a_target_with_decimal_commas_is_refused",
    "a target with very many classes": f"{BEGINNERS}::test_very_many_classes_are_told",
    "dates": f"{BEGINNERS}::test_dates",
    "warnings with paths": f"{BEGINNERS}::test_warnings_are_notes_without_paths",
    "help without text in brackets": f"{BEGINNERS}::test_help_keeps_text_in_square_brackets",
    "names of losses of other libraries": f"{MESSAGES}::test_losses_of_regressors",
    "parameters of other libraries": f"{MESSAGES}::test_parameters_of_other_libraries",
    "arguments of fit of other libraries": f"{MESSAGES}::test_arguments_of_fit",
    "internal classes in messages": f"{MESSAGES}::test_no_message_names_an_internal_class",
    "an unknown class in y_val": f"{MESSAGES}::test_an_unknown_class_in_validation_data",
    "arrays printed whole": f"{MESSAGES}::test_long_values_are_not_printed_whole",
    "types of fit and signatures": f"{MESSAGES}::test_decorators_keep_the_types_of_methods",
    "interaction constraints without names": "estimators/test_constraints.py::test_names_and_numbers_are_the_same_constraint",
    "plots and the command line are required packages": "test_without_extras.py::test_required_packages_alone",
    "the command without its packages": "test_without_extras.py::test_the_command_without_its_packages",
    "misleading bars, scores without intervals": "report/test_intervals.py",
    "mistakes mixed with correct rows": f"{REPORT}::test_only_mistakes_are_listed_as_such",
    "no choice of the positive class, no thresholds": "report/test_facts.py::test_thresholds_count_the_rows_above_them",
    "training rows are not recognized": f"{REPORT}::test_training_rows_are_counted",
    "reports without weights": f"{REPORT}::test_weights_count_rows_several_times[classes]",
    "reports without drift": f"{REPORT}::test_drift_finds_the_columns_that_moved",
    "reports without Shapley values": f"{REPORT}::test_contributions_are_shapley_values",
    "charts without values": "report/test_page.py::test_charts_carry_their_values",
    "tables cannot be sorted": "report/test_page.py::test_the_page_permits_its_own_script_only",
    "no comparison of models": "report/test_comparison.py::test_scores_are_those_of_the_reports[numbers]",
    "no gallery": "test_gallery.py::test_there_is_a_picture_for_each_example",
    "no pages for other libraries' users": "test_everyday.py::test_pages_for_users_of_other_libraries_have_two_columns",
    "parameters are not in groups": "test_parameter_groups.py::test_every_parameter_has_one_group",
    "no picture in the README": "test_everyday.py::test_the_readme_begins_with_a_picture_and_headlines",
    "trees do not count rows": "export/test_trees.py::test_rows_of_the_nodes_are_counted",
    "the demo shows trees only": "cli/test_commands.py::test_demo_writes_its_pictures",
    "no python -m hilboost": "test_without_extras.py::test_the_package_is_a_command",
    "no conda recipe": "test_without_extras.py::test_the_conda_recipe_has_the_same_requirements",
    "no version of the changelog": "test_everyday.py::test_the_changelog_names_the_version",
}  # fmt: skip
PLACEHOLDER = '''

class _Absent:
    """In place of a name that this revision does not have."""

    def __init__(self, name):
        self._name = name

    def __call__(self, *_, **__):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __mro_entries__(self, bases):
        return (object,)

    def __iter__(self):
        return iter(())

    def __hash__(self):
        return id(self)

    def __getitem__(self, _):
        return self

    def _same(self, *_):
        return self

    __add__ = __radd__ = __mul__ = __rmul__ = __or__ = __ror__ = __pow__ = _same

'''
CHOSEN = """
WANTED = {wanted}


def pytest_collection_modifyitems(items):
    items[:] = [
        item for item in items if any((item.nodeid + "[").startswith((w + "[", w + "::")) for w in WANTED)
    ]
"""


def guarded(text: str) -> str:
    """The code of a module whose failing imports give placeholders."""
    tree = ast.parse(text)
    lines = text.splitlines()
    for node in reversed(tree.body):
        if not isinstance(node, ast.Import | ast.ImportFrom) or node.lineno is None:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        new = []
        for alias in node.names:
            name = (alias.asname or alias.name).partition(".")[0]
            one = ast.unparse(
                ast.Import([alias])
                if isinstance(node, ast.Import)
                else ast.ImportFrom(node.module, [alias], node.level)
            )
            absent = f"    from _absent import _Absent\n    {name} = _Absent({name!r})"
            new.append(f"try:\n    {one}\nexcept Exception:\n{absent}")
        lines[node.lineno - 1 : node.end_lineno] = new
    return "\n".join(lines) + "\n"


def prepare(folder: Path) -> None:
    """Check out the revision, with the tests of today."""
    command = ["git", "worktree", "add", "--quiet", "--detach", "--force", str(folder), REVISION]
    subprocess.run(command, cwd=ROOT, check=True)
    shutil.rmtree(folder / "tests")
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "_absent.py").write_text(PLACEHOLDER)
    for path in (folder / "tests").rglob("*.py"):
        path.write_text(guarded(path.read_text()))


def outcomes(folder: Path) -> dict[str, tuple[bool, str]]:
    """Whether each test fails in a folder, and the first line of its message."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder)])}
    wanted = sorted({f"tests/{test}" for test in FINDINGS.values()})
    (folder / "_chosen.py").write_text(CHOSEN.format(wanted=wanted))
    # Whole files, because a test that a file does not have would end the run.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "_chosen"]
    command += ["--tb=line", "--continue-on-collection-errors", f"--junitxml={folder / 'out.xml'}"]
    command += sorted({test.partition("::")[0] for test in wanted})
    subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True)
    (folder / "_chosen.py").unlink()
    cases = list(ElementTree.parse(folder / "out.xml").iter("testcase"))
    found = {}
    for test in FINDINGS.values():
        path, _, name = test.partition("::")
        module = "tests." + path.removesuffix(".py").replace("/", ".")
        own = [case for case in cases if case.get("classname") == module and is_of(case, name)]
        bad = [one for case in own for one in case if one.tag in ("failure", "error")]
        message = (bad[0].get("message") or "").split("\n")[0][:160] if bad else ""
        found[test] = (bool(bad) or not own, message if own else "not collected")
    return found


def is_of(case: ElementTree.Element, name: str) -> bool:
    """Whether a case belongs to a test, to all parameters of it, or to a whole file."""
    own = case.get("name") or ""
    return not name or own == name or own.startswith(f"{name}[")


def main() -> None:
    """Run, and write JSON and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", action="store_true", help="run on this checkout instead")
    if parser.parse_args().here:
        failing = [test for test, (fails, _) in outcomes(ROOT).items() if fails]
        (ROOT / "out.xml").unlink(missing_ok=True)
        print(f"{len(failing)} of {len(FINDINGS)} tests fail here: {failing}")
        return
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "before"
        try:
            prepare(folder)
            found = outcomes(folder)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(folder)], cwd=ROOT)
    records = [
        {"finding": finding, "test": test, "fails": found[test][0], "message": found[test][1]}
        for finding, test in FINDINGS.items()
    ]
    count = sum(record["fails"] for record in records)
    absent = sum(record["message"] == "not collected" for record in records)
    write_json(
        RESULTS / "findings.json",
        {"revision": REVISION, "fail": count, "not_collected": absent, "records": records},
    )
    rows = "\n".join(
        f"| {r['finding']} | `{r['test']}` | {'fails' if r['fails'] else 'passes'} |"
        for r in records
    )
    text = (
        f"# Tests of findings of everyday use, run on revision {REVISION}\n\n"
        f"{count} of {len(records)} tests fail there, {absent} of them because their files cannot be "
        "imported.\n\n"
        f"| finding | test | there |\n| --- | --- | --- |\n{rows}\n"
    )
    (RESULTS / "findings.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
