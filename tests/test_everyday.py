"""What newcomers look for first: names, pages, pictures."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import hilboost
from hilboost.core.target import Target
from hilboost.losses import SquaredError

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}
TARGET = Target(np.ones((3, 1)))


def test_gradients_are_at_top_level():
    gradients = hilboost.Gradients(np.ones((3, 1)), np.ones((3, 1)))
    assert type(gradients) is type(SquaredError().gradients(TARGET, np.zeros((3, 1))))


def test_pages_for_users_of_other_libraries_have_two_columns():
    for name in ("scikit_learn", "lightgbm", "xgboost", "catboost"):
        page = (ROOT / "docs" / "migrate" / f"{name}.md").read_text(encoding="utf-8")
        theirs, ours = page.partition('<div class="migration"')[2].split("```python", 1)
        assert "import hilboost" not in theirs
        assert "from hilboost import" in ours


def test_the_readme_begins_with_a_picture_and_headlines():
    first = README.partition("```python")[0]
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", first)
    assert (ROOT / picture).is_file()
    assert 3 <= len(re.findall(r"^\* \*\*", first, re.MULTILINE)) <= 5


def test_the_readme_is_short():
    offers = README.partition("## What it offers")[2].partition("\n## ")[0]
    assert len(offers.split()) <= 180
    assert len(re.findall(r"\]\(docs/", README)) <= 26


@pytest.mark.parametrize("name", ["imbalanced", "mlflow", "time_series", "tuning"])
def test_recipes_are_found_and_have_examples(name):
    assert f"(docs/recipes/{name}.md)" in README
    assert "```python\n" in (ROOT / "docs" / "recipes" / f"{name}.md").read_text(encoding="utf-8")


OF_TREES = r"\b(?:to_xgboost_json|to_treelite|plot_tree|tree_table)\(|\.(?:apply|refit_leaves)\("


def test_examples_for_trees_ask_for_trees():
    """The automatic learner may choose a kernel machine alone, which these functions refuse."""
    for name, text in PAGES.items():
        code = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
        for use in re.finditer(OF_TREES, code):
            made = re.findall(r"Boosting(?:Regressor|Classifier)\((.*)", code[: use.start()])
            assert 'learner="tree"' in made[-1], (name, use[0])


def test_pages_that_praise_files_name_the_training_rows_in_them():
    for name, text in [*PAGES.items(), ("README", README)]:
        praises = re.search(r"\b(without|no)\s+pickle\b", text)
        assert not praises or re.search(r"training.(rows|data|outputs)", text), name


def test_the_changelog_names_the_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.findall(r"^## (\d\S+)\n\n### Added$", text, re.MULTILINE)
    assert found[0] == hilboost.__version__


@pytest.mark.parametrize("name", ["BoostingRegressor", "BoostingClassifier"])
def test_models_that_are_not_fitted_say_so(name):
    model, X = getattr(hilboost, name)(), np.zeros((3, 2))
    tried = 0
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "apply"):
        if hasattr(type(model), method):
            tried += 1
            with pytest.raises(NotFittedError, match="is not fitted yet"):
                getattr(model, method)(X)
    assert tried >= 2
    for method in ("score", "refit_leaves", "report", "calibrate"):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(model, method)(X, [0, 1, 0])
