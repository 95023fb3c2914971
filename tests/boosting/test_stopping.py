"""Early stopping, validation data, callbacks and what is printed."""

import numpy as np
import pytest
from tests.cases import PLAIN
from tests.reloaded import reloaded

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.boosting.config import EarlyStopping
from hilboost.core.errors import InvalidParameter

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = X[:, 0] + 0.5 * RNG.normal(size=300)
GROUPS = np.arange(300) // 5
EARLY = dict(PLAIN, learner="tree") | {
    "early_stopping": True,
    "n_estimators": 200,
    "learning_rate": 0.3,
    "n_iter_no_change": 5,
}


@pytest.mark.parametrize(
    ("losses", "patience", "tolerance", "stops"),
    [
        ([5, 4, 3], 2, 0, False),
        ([5, 4, 4, 4], 2, 0, True),
        ([5, 4, 4, 3.9], 2, 0, False),
        ([5, 4, 5], 2, 0, False),
        ([5, 4, 5, 6], 2, 0, True),
        ([5, 6], 2, 0, False),
        ([5, 6, 6], 2, 0, True),
        ([5, 4.9, 4.8], 2, 0.1, True),
        ([5, 4.9, 4.4], 2, 0.1, False),
        ([-5, -5.1, -5.2], 2, 0.1, True),
        ([-5, -5.1, -5.8], 2, 0.1, False),
        ([np.nan, 5, 4], 2, 0, False),
        ([np.nan, 5, 6, 7], 2, 0, True),
        ([np.nan, 5, np.nan, 4.4], 2, 0.1, False),
        ([np.nan, 5, np.nan, 4.6], 2, 0.1, True),
        ([np.nan] * 3, 2, 0, True),
    ],
)
def test_when_to_stop(losses, patience, tolerance, stops):
    assert EarlyStopping(patience, tolerance).should_stop(losses) is stops


def test_the_best_stage_is_the_first_of_equals():
    assert EarlyStopping.best_stage([3.0, 1.0, 2.0, 1.0]) == 1
    assert EarlyStopping.best_stage([1.0, 1.0]) == 0
    assert EarlyStopping.best_stage([np.nan, 1.0, np.nan, 0.5, 0.5]) == 3


def test_more_stages_than_the_best_are_kept_as_far_as_there_are_some():
    stopping = EarlyStopping(3, 0.0, extension=1.5)
    assert stopping.kept_stages([5.0, 3.0, 2.0, 3.0, 3.0]) == 3
    assert stopping.kept_stages([5.0, 3.0, 2.0, 1.0]) == 3
    assert stopping.kept_stages([1.0, 2.0, 3.0]) == 0


@pytest.mark.parametrize(
    ("extended", "parameters", "given"),
    [
        (True, {"cv_folds": 3}, {"groups": GROUPS}),
        (False, {"cv_folds": 1}, {"groups": GROUPS}),
        (False, {"cv_folds": 3}, {"time": GROUPS}),
        (False, {"cv_folds": 3, "loss": "huber"}, {"groups": GROUPS}),
        (False, {"cv_folds": 3, "validation": "random"}, {"groups": GROUPS}),
    ],
)
def test_a_mean_of_members_judged_by_groups_keeps_half_as_many_stages_again(
    extended, parameters, given
):
    y = Y + RNG.normal(size=60)[GROUPS]
    model = BoostingRegressor(**EARLY | parameters).fit(X, y, **given)
    losses = model.history_.validation
    best = int(np.argmin(losses))
    kept = min(len(losses) - 1, int(1.5 * best)) if extended else best
    assert best > 2
    assert model.n_estimators_ == kept


@pytest.mark.parametrize("cv_folds", [1, 2, 5])
def test_a_fit_stops_and_keeps_the_best_stage(cv_folds):
    model = BoostingRegressor(**EARLY, cv_folds=cv_folds).fit(X, Y)
    losses = model.history_.validation
    best = int(np.argmin(losses))
    assert model.n_estimators_ == best == len(model.model_.stages)
    assert len(losses) == len(model.history_.train) == best + 5 + 1 < 201


def test_a_validation_set_is_used_as_given():
    X_val, y_val = X[200:], Y[200:]
    model = BoostingRegressor(**EARLY).fit(X[:200], Y[:200], X_val=X_val, y_val=y_val)
    staged = [np.full(100, model.model_.initial_raw[0]), *model.staged_predict(X_val)]
    expected = [0.5 * np.mean((y_val - p) ** 2) for p in staged]
    np.testing.assert_allclose(model.history_.validation[: len(expected)], expected, rtol=1e-12)
    staged = [np.full(200, model.model_.initial_raw[0]), *model.staged_predict(X[:200])]
    expected = [0.5 * np.mean((Y[:200] - p) ** 2) for p in staged]
    np.testing.assert_allclose(model.history_.train[: len(expected)], expected, rtol=1e-12)


def test_validation_weights_count():
    X_val, y_val = np.vstack([X[200:], X[200:250]]), np.concatenate([Y[200:], Y[200:250]])
    repeated = BoostingRegressor(**EARLY).fit(X[:200], Y[:200], X_val=X_val, y_val=y_val)
    weight = np.repeat([2.0, 1.0], 50)
    weighted = BoostingRegressor(**EARLY).fit(
        X[:200], Y[:200], X_val=X[200:], y_val=Y[200:], sample_weight_val=weight
    )
    np.testing.assert_allclose(
        weighted.history_.validation, repeated.history_.validation, rtol=1e-12
    )


def test_validation_data_turn_early_stopping_on_unless_refused():
    data = {"X_val": X[200:], "y_val": Y[200:]}
    settings = EARLY | {"early_stopping": "auto"}
    assert BoostingRegressor(**settings).fit(X[:200], Y[:200], **data).n_estimators_ < 200
    settings = EARLY | {"early_stopping": False, "n_estimators": 60}
    model = BoostingRegressor(**settings).fit(X[:200], Y[:200], **data)
    assert model.n_estimators_ == 60
    assert len(model.history_.validation) == 61
    assert model.history_.validation.argmin() < 60


def test_without_held_out_rows_there_is_no_validation_loss():
    events = []
    model = BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[events.append])
    assert model.history_.validation is None
    assert len(model.history_.train) == 11
    assert [event.validation_loss for event in events] == [None] * 10


def test_tolerance_stops_sooner():
    strict = BoostingRegressor(**EARLY, cv_folds=1, tol=0.1).fit(X, Y)
    lenient = BoostingRegressor(**EARLY, cv_folds=1).fit(X, Y)
    assert len(strict.history_.train) < len(lenient.history_.train)


def test_validation_rows_are_not_learned_from():
    """Whatever the held-out target is, the first stages are the same."""
    fits = []
    for noise in (0, 1000):
        y_val = Y[200:] + noise * RNG.normal(size=100)
        settings = EARLY | {"n_estimators": 5}
        model = BoostingRegressor(**settings).fit(X[:200], Y[:200], X_val=X[200:], y_val=y_val)
        fits.append(model.history_.train)
    np.testing.assert_array_equal(*fits)


@pytest.mark.parametrize("cv_folds", [2, 4])
def test_a_committee_is_the_mean_of_members_without_their_fold(cv_folds):
    model = BoostingRegressor(**EARLY | {"n_estimators": 8}, cv_folds=cv_folds).fit(X, Y)
    members = [member.predict_raw(X)[:, 0] for member in model.fitted_.members]
    assert len(members) == cv_folds
    np.testing.assert_allclose(model.predict(X), np.mean(members, axis=0), rtol=1e-10, atol=1e-12)


def test_classes_are_spread_over_folds():
    y = np.zeros(300, dtype=int)
    y[:6] = 1
    model = BoostingClassifier(**EARLY, cv_folds=3).fit(X, y)
    starts = [member.initial_raw[0] for member in model.fitted_.members]
    np.testing.assert_allclose(starts, np.log(4 / 196), rtol=1e-12)


def test_callbacks_are_told_about_every_stage():
    events = []
    model = BoostingRegressor(**PLAIN).fit(
        X[:200], Y[:200], X_val=X[200:], y_val=Y[200:], callbacks=[events.append]
    )
    assert [event.stage for event in events] == list(range(1, 11))
    assert {event.n_stages for event in events} == {10}
    np.testing.assert_array_equal([e.train_loss for e in events], model.history_.train[1:])
    np.testing.assert_array_equal(
        [e.validation_loss for e in events], model.history_.validation[1:]
    )


@pytest.mark.parametrize("answer", [True, None, False, 1, "yes"])
def test_a_callback_ends_the_fit_by_returning_true(answer):
    seen = []

    def third(event):
        seen.append(event.stage)
        return answer if event.stage == 3 else None

    model = BoostingRegressor(**PLAIN).fit(X, Y, callbacks=[third, lambda event: None])
    assert model.n_estimators_ == (3 if answer is True else 10)
    assert len(seen) == model.n_estimators_


def test_a_fit_ended_by_a_callback_can_be_continued():
    model = BoostingRegressor(**PLAIN, warm_start=True)
    model.fit(X, Y, callbacks=[lambda event: event.stage == 4])
    model.fit(X, Y)
    whole = BoostingRegressor(**PLAIN).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_errors_of_a_callback_reach_the_caller():
    def broken(event):
        raise RuntimeError("broken")

    model = BoostingRegressor(**PLAIN)
    with pytest.raises(RuntimeError, match="broken"):
        model.fit(X, Y, callbacks=[broken])


@pytest.mark.parametrize(("verbose", "n_lines"), [(0, 0), (1, 2), (True, 2), (2, 12)])
def test_what_is_printed(capsys, verbose, n_lines):
    settings = PLAIN | {"n_estimators": 12, "verbose": verbose}
    BoostingRegressor(**settings).fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == n_lines
    assert all("train loss" in line and "validation loss" in line for line in lines)


def test_without_a_validation_fraction_the_training_loss_decides():
    given = PLAIN | {"n_estimators": 200, "early_stopping": True, "validation_fraction": None}
    model = BoostingRegressor(**given, tol=1e-3, n_iter_no_change=3).fit(X, Y)
    plain = BoostingRegressor(**PLAIN | {"n_estimators": model.n_estimators_})
    np.testing.assert_array_equal(model.predict(X), plain.fit(X, Y).predict(X))
    assert 3 < model.n_estimators_ < 200
    assert model.history_.validation is None
    train = model.history_.train
    rule = EarlyStopping(3, 1e-3)
    assert rule.should_stop(train.tolist())
    assert not rule.should_stop(train[:-1].tolist())
    with pytest.raises(InvalidParameter, match="validation_fraction=None holds none out"):
        BoostingRegressor(**given, eval_metric="mae").fit(X, Y)


@pytest.mark.parametrize("changed", [{}, {"n_shards": 2}, {"n_estimators": "auto"}])
@pytest.mark.parametrize("estimator", [BoostingRegressor, BoostingClassifier])
def test_a_fit_by_the_training_loss_can_be_continued(estimator, changed):
    given = {"early_stopping": True, "validation_fraction": None, "random_state": 0}
    given |= {"n_estimators": 8, "warm_start": True} | changed
    y = Y if estimator is BoostingRegressor else Y > 0
    whole = estimator(**given | {"n_estimators": 12}).fit(X, y)
    part = estimator(**given | {"n_estimators": 5}).fit(X, y)
    for model in (part, reloaded(part)):
        model.set_params(n_estimators=12).fit(X, y)
        np.testing.assert_array_equal(model.predict_raw(X), whole.predict_raw(X))
    assert part.fitted_.resolved.cv_folds == len(part.fitted_.members) == 1


def test_folds_need_no_validation_fraction():
    given = PLAIN | {"early_stopping": True, "validation_fraction": None, "cv_folds": 3}
    assert BoostingRegressor(**given).fit(X, Y).history_.validation is not None
