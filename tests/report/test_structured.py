"""Reports of structured outputs do not depend on the form of the labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import classification_report

from hilboost import OutputKernelBoostingRegressor
from hilboost.core.errors import InvalidData

X = np.random.default_rng(0).normal(size=(60, 3))
NAMES = ["rash", "cough", "fever"]


def _frame(table):
    return pd.DataFrame(table, columns=NAMES)


def _sets(table):
    return [{NAMES[k] for k in np.flatnonzero(row)} for row in table]


TABLES = {"array": np.asarray, "frame": _frame, "rows": np.ndarray.tolist}
SETS = {
    "bools": lambda table: table.astype(bool),
    "frame of bools": lambda table: _frame(table > 0),
    "sets": _sets,
    "series of sets": lambda table: pd.Series(_sets(table)),
}
LISTS = {"series of lists": lambda table: pd.Series(table.tolist())}
LABELS = {
    "label_set": (X > 0).astype(int),
    "ranking": np.argsort(np.argsort(X, axis=1), axis=1) + 1,
    "composition": np.abs(X) / np.abs(X).sum(axis=1, keepdims=True),
    "distribution": X + 1,
    "linear": X + 1,
    "gaussian": X + 1,
}


def _numbers(model, labels):
    facts = model.report_facts(X, labels)
    scores = {one["name"]: one["value"] for one in facts["scores"]}
    return scores | {"score": model.score(X, labels), "loss": model.preimage_loss(X, labels)}


@pytest.mark.parametrize("output", LABELS)
@given(data=st.data())
def test_numbers_do_not_depend_on_the_form_of_the_labels(output, data):
    table = LABELS[output]
    forms = TABLES | {"label_set": SETS, "ranking": LISTS}.get(output, {})
    fitted = data.draw(st.sampled_from(sorted({*forms} - {"sets", "series of sets"})))
    metric = data.draw(st.sampled_from(["embedding", "preimage"]))
    model = OutputKernelBoostingRegressor(output, learner="ok3", n_estimators=2, metric=metric)
    model.fit(X, forms[fitted](table))
    known = {name for name in forms if "frame" in fitted or "sets" not in name}
    other = data.draw(st.sampled_from(sorted(known)))
    assert _numbers(model, forms[other](table)) == _numbers(model, table)


def test_galleries_have_the_names_of_a_frame():
    frame = _frame(LABELS["label_set"])
    model = OutputKernelBoostingRegressor("label_set", learner="ok3").fit(X, frame)
    parts = model.report_facts(X, frame)["structured"]["gallery"]["parts"]
    assert {name for part in parts for item in part["items"] for name in item["both"]} == {*NAMES}


def test_scores_of_each_label_are_those_of_scikit_learn():
    frame = _frame(LABELS["label_set"])
    model = OutputKernelBoostingRegressor("label_set", learner="ok3", n_estimators=3).fit(X, frame)
    expected = classification_report(
        frame, model.predict(X), target_names=NAMES, output_dict=True, zero_division=0
    )
    page = model.report(X, frame)
    for one in page.facts["structured"]["by_label"]:
        scores = expected[one["name"]]
        assert one["rows"] == scores["support"]
        assert one["recall"] == pytest.approx(scores["recall"])
        assert one["f1"] == pytest.approx(scores["f1-score"])
        assert f'<th scope="row">{one["name"]}</th>' in page.html


def test_rankings_have_the_names_of_a_frame():
    frame = _frame(LABELS["ranking"])
    model = OutputKernelBoostingRegressor("ranking", learner="ok3", n_estimators=3).fit(X, frame)
    parts = model.report_facts(X, frame)["structured"]["gallery"]["parts"]
    true = parts[0]["items"][0]["true"].split(" › ")
    assert true == frame.loc[parts[0]["items"][0]["row"]].sort_values().index.tolist()


def test_frames_are_compared_with_sets_by_name():
    names, table = sorted(NAMES), LABELS["label_set"]
    model = OutputKernelBoostingRegressor("label_set", learner="ok3", n_estimators=2)
    model.fit(X, _sets(table))
    assert _numbers(model, _frame(table)[names]) == _numbers(model, _sets(table))
    with pytest.raises(InvalidData, match="differ from those in fit: some are .* order"):
        model.score(X, _frame(table))
