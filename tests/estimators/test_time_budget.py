"""``time_budget`` of the estimators for tables."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.reloaded import reloaded

from hilboost import BoostingRegressor
from hilboost.backends.work_clock import paused
from hilboost.core.errors import FitWarning
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
from hilboost.training import budget, early_kernel_check, race
from hilboost.training.run import Pace

# Other processes may leave little time for a fit.
pytestmark = pytest.mark.filterwarnings("ignore:time_budget=.* ended the fit after")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 8))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + RNG.normal(size=3000) / 5
ONE = {"n_jobs": 1, "random_state": 0}


def seconds(function):
    """Of the processor: others may use it, too."""
    began = time.process_time()
    function()
    return time.process_time() - began


def assert_good_in_time(model, rows, good):
    """The limit is kept, and the model is good; a slow machine may have more time for both.

    How long a kernel machine takes is estimated before it is fitted.
    """
    budget = model.time_budget
    for factor in (1, 2, 4, 8):
        model.set_params(time_budget=factor * budget)
        if seconds(lambda: model.fit(*rows)) < 1.2 * factor * budget and good(model):
            return
    pytest.fail(f"the model is not good after {factor * budget} s, or takes longer.")


@pytest.mark.slow
def test_a_short_fit_takes_larger_steps_and_no_trials():
    BoostingRegressor(**ONE, learner="tree").fit(X, Y)  # compiled now
    model = BoostingRegressor(**ONE, learner="tree", time_budget=0.35)
    assert seconds(lambda: model.fit(X, Y)) < 1.2 * 0.35
    resolved = model.fitted_.resolved
    assert 0.08 < resolved.learning_rate <= 0.3
    assert resolved.max_features == 1.0
    assert model.score(X, Y) > 0.7


def test_what_is_given_is_kept():
    model = BoostingRegressor(**ONE, learner="tree", learning_rate=0.05, time_budget=0.3)
    model.set_params(cv_folds=2).fit(X, Y)
    assert model.resolved_.learning_rate == 0.05
    assert model.resolved_.cv_folds == 2
    model = BoostingRegressor(**ONE, n_estimators=10**6, early_stopping=False, time_budget=0.3)
    assert model.fit(X, Y).n_estimators_ < 10**6


def test_compilation_does_not_use_up_the_budget():
    def compile_for_long(event):
        if event.stage == 1:
            with paused():
                time.sleep(1.5)

    model = BoostingRegressor(**ONE, learner="tree", time_budget=1.5, early_stopping=False)
    model.set_params(n_estimators=20).fit(X[:300], Y[:300], callbacks=[compile_for_long])
    assert model.n_estimators_ == 20
    assert model.history_.seconds[0] < 1.5


@pytest.mark.parametrize("settings", [{"early_stopping": False}, {"n_estimators": 2}])
def test_a_fit_that_ends_after_too_few_stages_warns(settings):
    model = BoostingRegressor(**ONE | {"learner": "tree", "time_budget": 1e-6} | settings)
    with pytest.warns(FitWarning, match="time_budget=1e-06 .* after 1 stage .* set a larger"):
        model.fit(X[:300], Y[:300])
    assert model.n_estimators_ == 1


def test_fewer_members_are_fitted_in_less_time():
    folds = [
        BoostingRegressor(**ONE, learner="tree", n_estimators=2, early_stopping=True)
        .set_params(time_budget=seconds)
        .fit(X, Y)
        .fitted_.resolved.cv_folds
        for seconds in (0.01, 100.0)
    ]
    assert folds == [1, 4]


QUANTILES = {"loss": "quantile", "quantile": [0.05, 0.5, 0.95], "time_budget": 3.0}


@pytest.fixture
def probe(monkeypatch):
    """A probe of 20 ms for a stage of four members, which finds that ``needed`` is the progress."""

    class Probe:
        seconds_per_stage = 0.005
        needed = 60.0

        def __init__(self, *parts):
            pass

        def progress(self, seconds):
            assert seconds > 0
            return self.needed

    monkeypatch.setattr(race, "_Probe", Probe)
    return Probe


@pytest.mark.parametrize(
    ("needed", "rate", "compares"), [(1.5, 0.08, True), (15.0, 0.2, False), (60.0, 0.3, False)]
)
def test_the_rate_is_as_low_as_the_time_allows(probe, runs, monkeypatch, needed, rate, compares):
    probe.needed = needed
    monkeypatch.setattr(race, "n_trial_stages", lambda recipe: 150)
    model = BoostingRegressor(**ONE, **QUANTILES, cv_folds=4).fit(X[:200], Y[:200])
    assert model.resolved_.learning_rate == pytest.approx(rate, rel=0.1)
    assert bool(runs) == compares


@pytest.mark.parametrize("n_stages", [1, 20])
def test_the_rate_stays_if_there_is_time_for_all_stages(probe, monkeypatch, n_stages):
    monkeypatch.setattr(race, "n_trial_stages", lambda recipe: 10**6)
    few = ONE | {"learner": "tree", "n_estimators": n_stages, "early_stopping": True}
    table, target = X[:300, :4], Y[:300]
    plain, short = (
        BoostingRegressor(**few, cv_folds=2, time_budget=budget).fit(table, target)
        for budget in (None, 5.0)
    )
    assert short.resolved_.learning_rate == plain.resolved_.learning_rate == 0.1
    assert len(short.history_.train) == 1 + n_stages
    assert short.resolved_.max_features == 1.0  # no trial runs


def test_a_probe_tells_how_many_stages_are_needed(monkeypatch):
    probes = []

    class Probe(race._Probe):
        def __init__(self, *parts):
            super().__init__(*parts)
            probes.append(self)

    monkeypatch.setattr(race, "_Probe", Probe)
    for target in (RNG.normal(size=300), np.sin(2 * X[:300, 0]) + X[:300, 1] * X[:300, 2]):
        BoostingRegressor(**ONE, learner="tree", time_budget=60.0).fit(X[:300], target)
    noise, smooth = probes
    assert 0.3 <= noise.progress(1e6) < 3
    known = smooth._trial.n_stages
    smooth._trial.config = replace(smooth._trial.config, n_stages=known)
    assert smooth.progress(0.0) == pytest.approx(0.3 * 3 * known)


def test_a_stage_that_was_interrupted_does_not_end_a_fit():
    durations = Pace()
    found = [durations.seconds_after(now) for now in (0.0, 1.0, 2.0, 12.0, 13.0, 33.0)]
    assert found == [0.0, 1.0, 1.0, 1.0, 1.0, 10.0]


@pytest.mark.slow
def test_trees_stop_for_a_kernel_machine_that_is_worth_it(monkeypatch):
    attempts, stages = [], []

    class Attempt(early_kernel_check.KernelTrial):
        seconds_left = 100.0  # more than the budget

        def __init__(self, *parts):
            super().__init__(*parts)
            attempts.append(self)

        def is_worth(self, n_more):
            self.asked = n_more
            return super().is_worth(len(self._state.train) * self.factor)

    monkeypatch.setattr(early_kernel_check, "KernelTrial", Attempt)
    monkeypatch.setattr(early_kernel_check, "FIRST_LOOK", 20)
    last = []
    for Attempt.factor in (0, 10**6):
        model = BoostingRegressor(**ONE, cv_folds=1, n_estimators=60, time_budget=20.0)
        model.fit(X[:900], Y[:900], callbacks=[lambda event: stages.append(event.stage)])
        last.append(stages[-1])
    assert last[0] < last[1] <= 60
    assert attempts[0].asked > 100
    assert attempts[0]._is_promising
    assert not attempts[1]._is_promising


@pytest.mark.slow
def test_a_budget_that_suffices_changes_nothing():
    settings = ONE | {"cv_folds": 1, "n_estimators": 90, "learning_rate": 0.3}
    plain, timed = (
        BoostingRegressor(**settings, n_iter_no_change=4, time_budget=seconds).fit(X[:500], Y[:500])
        for seconds in (None, 1000.0)
    )
    assert plain.parts_["kernel"].weight > 0
    np.testing.assert_array_equal(timed.predict(X), plain.predict(X))


@pytest.mark.slow
def test_a_kernel_machine_needs_time():
    table, target = X[:600], Y[:600]
    one = ONE | {"cv_folds": 1}
    BoostingRegressor(**one).fit(table, target)  # compiled now
    short = BoostingRegressor(**one, time_budget=0.3).fit(table, target)
    assert short.fitted_.parts is None

    def is_better(model):
        chosen = model.fitted_.parts is not None and model.parts_["kernel"].weight > 0
        return chosen and model.score(X[600:], Y[600:]) > short.score(X[600:], Y[600:])

    enough = BoostingRegressor(**one, time_budget=3.0)
    assert_good_in_time(enough, (table, target), is_better)


def test_kernel_machines_have_fewer_centers_on_a_slow_machine(monkeypatch):
    monkeypatch.setattr(budget, "_slowness", lambda: 1.0)
    data, numbers = SimpleNamespace(X=X), []
    for contention in (1.0, 20.0, 1e6):
        run = SimpleNamespace(
            recipe=SimpleNamespace(data=data, n_folds=1),
            team=SimpleNamespace(n_threads=1),
            clock=SimpleNamespace(contention=contention),
        )
        learner = budget.in_time(MetricKernelLearner(n_centers=2500), run, 18.0)
        numbers.append(0 if learner is None else learner.n_centers)
    assert numbers[0] == 2500 > numbers[1] > numbers[2] == 0


def test_a_machine_that_is_too_slow_fits_no_kernel_machine(monkeypatch):
    monkeypatch.setattr(budget, "_slowness", lambda: 1e6)
    model = BoostingRegressor(**ONE, cv_folds=1, n_estimators=50, time_budget=40.0)
    assert model.fit(X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]).fitted_.parts is None


def test_the_speed_of_the_machine_is_measured(monkeypatch):
    for seconds_of_sample, is_slow in ((1e9, False), (1e-9, True)):
        monkeypatch.setattr(budget, "_SECONDS_OF_SAMPLE", seconds_of_sample)
        found = budget._slowness()
        assert found > 1000 if is_slow else found == 1.0


@pytest.mark.slow
def test_a_better_kernel_machine_is_found_early_and_steps_keep_their_trees():
    def has_a_kernel_machine(model):
        kernel = None if model.fitted_.parts is None else model.parts_["kernel"]
        return kernel is not None and kernel.n_centers >= 500 and kernel.gain > 0.5

    def has_trees(model):
        progress = model.n_estimators_ * model.fitted_.resolved.learning_rate
        return progress > early_kernel_check._PROGRESS and model.score(X, steps) > 0.99

    smooth = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    steps = np.floor(2 * X[:, 0]) + 3 * np.floor(2 * X[:, 1])
    for target, good in ((smooth, has_a_kernel_machine), (steps, has_trees)):
        model = BoostingRegressor(**ONE, cv_folds=1, time_budget=1.0)
        assert_good_in_time(model, (X, target), good)


def test_the_choice_of_a_kernel_keeps_the_limit():
    table, smooth = X[:, :5], X[:, 0] * X[:, 1]
    model = BoostingRegressor(**ONE, learner=["tree", "kernel"], time_budget=1.5)
    rows = table[:400], smooth[:400]
    assert_good_in_time(model, rows, lambda model: model.score(table[400:], smooth[400:]) > 0.97)


def test_a_callback_still_ends_the_fit():
    model = BoostingRegressor(**ONE, time_budget=60.0)
    model.fit(X, Y, callbacks=[lambda event: event.stage == 5])
    assert model.n_estimators_ == 5
    assert model.fitted_.parts is None


def test_a_kernel_machine_that_takes_too_long_is_given_up(monkeypatch):
    def slow(self, table, rows, *parts):
        time.sleep(3.0)
        return parts[2].map(lambda _: pytest.fail("the time is over"), [0])

    monkeypatch.setattr(MetricKernelLearner, "space", slow)
    model = BoostingRegressor(**ONE, cv_folds=1, n_estimators=120, time_budget=3.0)
    model.fit(X[:2500], Y[:2500])
    assert model.n_estimators_ > 10
    assert str(model).endswith("; the time budget left no room for a kernel machine")
    with pytest.raises(AttributeError, match="time_budget left no room for one; set a larger"):
        model.parts_  # noqa: B018


def test_a_model_says_that_its_budget_ended_it():
    model = BoostingRegressor(**ONE, time_budget=1e-6, cv_folds=1).fit(X[:300], Y[:300])
    line = "trees, 1 stage of 1,500 (ended by the time budget); the time budget left no room for a "
    assert str(model).endswith(line + "kernel machine")
    assert str(reloaded(model)).endswith(line + "kernel machine")


def test_a_loss_that_still_falls_is_warned_of():
    model = BoostingRegressor(**ONE, learner="tree", learning_rate=0.3, time_budget=5.0)
    with pytest.warns(FitWarning, match="after 8 stages .* too few for a good model"):
        model.fit(X, Y, callbacks=[lambda event: time.sleep(5 if event.stage == 8 else 0)])
