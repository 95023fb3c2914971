"""Messages about names of other libraries, long values, validation data, and public names."""

import inspect
import pickle
import re
import warnings
from typing import TypeVar, get_type_hints

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import d2_pinball_score, r2_score
from tests.cases import PLAIN
from tests.refusals import refused

import hilboost
from hilboost import (
    AveragedKernelRidge,
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
)
from hilboost.core.errors import (
    DataWarning,
    InvalidData,
    InvalidParameter,
    InvalidType,
    first_few,
    shown,
)
from hilboost.estimators.peer_names import peers, same_loss, same_parameters
from hilboost.estimators.signatures import public_fit, public_methods, public_prediction
from hilboost.losses.registry import (
    classification_losses,
    ranking_losses,
    regression_losses,
    survival_losses,
)
from hilboost.network import NetworkCompletion

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=60)
LABELS = (Y > 0).astype(int)
SURVIVAL = BoostingSurvival(n_estimators=2)
TIMES = np.array(list(zip(LABELS > 0, np.abs(Y), strict=True)), dtype="?,f8")


def regressor(*arguments, **parameters):
    return BoostingRegressor(*arguments, **PLAIN | parameters)


# Names in other libraries


@pytest.mark.parametrize(
    ("estimator", "name", "match"),
    [
        (BoostingRegressor, "mae", r"not known. Did you mean 'absolute_error'\? Valid"),
        (BoostingRegressor, "RMSE", r"Did you mean 'squared_error'\?"),
        (BoostingRegressor, "reg:absoluteerror", r"Did you mean 'absolute_error'\?"),
        (BoostingClassifier, "binary:logistic", r"Did you mean 'log_loss'\?"),
        (BoostingClassifier, "Logloss", r"Did you mean 'log_loss'\?"),
        (BoostingRegressor, "log_loss", "is a loss of classes; .* BoostingClass"),
        (BoostingRegressor, "binary:logistic", "is a loss of classes; .* BoostingClass"),
        (BoostingRanker, "rank:ndcg", r"Did you mean 'lambdarank'\?"),
        (BoostingRanker, "survival:aft", "is a loss of BoostingSurvival; use it"),
        (BoostingSurvival, "survival:cox", r"Did you mean 'cox'\?"),
        (BoostingRegressor, "rank:pairwise", "is a loss of BoostingRanker; use it"),
        (BoostingClassifier, "Cox", "is a loss of BoostingSurvival; use it"),
    ],
)
def test_losses_of_other_libraries(estimator, name, match):
    y = {BoostingSurvival: TIMES, BoostingRegressor: Y}.get(estimator, LABELS)
    given = {"groups": np.zeros(len(LABELS))} if estimator is BoostingRanker else {}
    refused(InvalidParameter, f"^loss='{name}' .*{match}", estimator(name).fit, X, y, **given)


def test_losses_of_other_libraries_exist_here_under_the_other_name():
    known = {*regression_losses(), *classification_losses(), *ranking_losses(), *survival_losses()}
    assert set(peers("losses").values()) <= known
    assert not set(peers("losses")) & known
    assert same_loss("deviance", regression_losses()) is None


NO_L1 = r"; there is no L1 penalty, so set l2_regularization\.$"
IN_THE_LOSS = (
    r"; in Python, set it in the loss, such as loss=hilboost\.losses\.Tweedie\(power=1\.5\)"
)
OF_CLASSIFIERS = "; only classifiers have weights of classes; pass sample_"


@pytest.mark.parametrize(
    ("estimator", "name", "match"),
    [
        (BoostingRegressor, "max_iter", "has no parameter 'max_iter'; set n_estimators in"),
        (BoostingRegressor, "reg_lambda", r"set l2_regularization in BoostingRegressor\(\.\.\.\)"),
        (BoostingRegressor, "n_estimator", r"did you mean 'n_estimators'\?$"),
        (KernelBoostingRegressor, "reg_lambda", "set regularization in Kernel"),
        (KernelBoostingRegressor, "alpha", "set quantile or regularization in Kernel"),
        (BoostingClassifier, "eval_set", "pass X_val and y_val to fit"),
        (BoostingClassifier, "num_leaf_nodes", "did you mean 'max_leaf_nodes'"),
        (BoostingRanker, "label_gain", "set gain in"),
        (BoostingRanker, "eval_at", r"; set eval_metric, such as \['ndcg@1', 'ndcg@3'\]\.$"),
        (NetworkCompletion, "xyz", "the parameters are "),
        (KernelBoostingRegressor, "xyz", r"'xyz'; help\(KernelBoostingRegressor\) lists its"),
        (KernelBoostingRegressor, "monotonic_cst", r"BoostingRegressor\(monotonic_cst="),
        (SparseKernelClassifier, "num_leaves", r"BoostingClassifier\(max_leaf_nodes=\.\.\.\)\.$"),
        (BoostingRegressor, "stages", r"'stages'; use KernelBoostingRegressor\(stages=\.\.\.\)"),
        (BoostingRegressor, "k", r"help\(BoostingRegressor\) lists its parameters\.$"),
        (BoostingClassifier, "reg_alpha", NO_L1),
        (BoostingRegressor, "lambda_l1", NO_L1),
        (BoostingRanker, "importance_type", r"; feature_importances_ holds the gains; shap_values"),
        (BoostingRegressor, "tweedie_variance_power", IN_THE_LOSS),
        (BoostingRegressor, "power", IN_THE_LOSS),
        (BoostingRegressor, "exposure", r"; pass offset=np\.log\(exposure\) to fit and to predict"),
        (BoostingClassifier, "tweedie_variance_power", r"lists its parameters\.$"),
        (BoostingRegressor, "class_weight", OF_CLASSIFIERS),
        (SparseKernelRidge, "class_weight", OF_CLASSIFIERS),
        (SparseKernelClassifier, "gamma", "pass a kernel object as kernel, such as hilboost"),
    ],
)
def test_parameters_of_other_libraries(estimator, name, match):
    refused(InvalidType, f"^{estimator.__name__} .*{match}", estimator, **{name: 1})
    refused(InvalidParameter, match, estimator().set_params, **{name: 1})


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"quantile": 0.9}, "quantile=0.9 requires loss='quantile'; loss='squared_error' has no"),
        ({"loss": "huber", "quantile": [0.1, 0.9]}, r"quantile=\[0.1, 0.9\] requires loss='qu"),
        ({"eval_metric": max}, r"FunctionMetric\(function, higher_is_better=\.\.\.\)\.$"),
        ({"eval_metric": "f1"}, r"FunctionMetric\(function, higher_is_better=\.\.\.\)\.$"),
    ],
)
def test_parameters_without_effect_or_meaning(parameters, match):
    refused((InvalidParameter, InvalidType), match, regressor(**parameters).fit, X, Y)


def test_all_suggested_parameters_exist():
    known = set()
    for estimator in (
        BoostingRegressor,
        BoostingClassifier,
        BoostingRanker,
        BoostingSurvival,
        KernelBoostingRegressor,
    ):
        known |= {*estimator().get_params(), *inspect.signature(estimator.fit).parameters}
    for name in peers("parameters"):
        assert set(same_parameters(name)) <= known, name
        assert name not in known


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("eval_set", "has no argument 'eval_set'; pass X_val and y_val to fit"),
        ("early_stopping_rounds", r"set n_iter_no_change in BoostingRegressor\(\.\.\.\)"),
        ("n_estimators", "set n_estimators in BoostingRegressor"),
    ],
)
def test_arguments_of_fit(name, match):
    refused(InvalidType, f"BoostingRegressor.fit .*{match}", regressor().fit, X, Y, **{name: 1})


def test_estimators_are_cloned_and_pickled_as_before():
    model = regressor(learner=None)
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()
    assert next(iter(inspect.signature(BoostingRegressor).parameters)) == "loss"


# Messages of the interpreter


def test_no_message_names_an_internal_class():
    for call, beginning in (
        (lambda: regressor().fit(X), "fit() missing"),
        (
            lambda: regressor().fit(X, Y).predict(X, num_iteration=3),
            "BoostingRegressor.predict has",
        ),
        (lambda: regressor().predict(), "predict() missing"),
        (lambda: OutputKernelForestRegressor().predict(), "predict() missing"),
        (lambda: regressor().apply(), "apply() missing"),
    ):
        with pytest.raises(TypeError) as error:
            call()
        assert str(error.value).startswith(beginning)


# Long values


MANY = np.arange(500.0)
FIFTY, ROWS = BoostingClassifier(**PLAIN), np.arange(100)[:, None] % 50  # classes


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize(
    "call",
    [
        lambda: regressor(MANY).fit(X, Y),
        lambda: regressor(n_estimators=MANY).fit(X, Y),
        lambda: regressor(n_estimators=list(range(3000))).fit(X, Y),
        lambda: regressor(learner=MANY).fit(X, Y),
        lambda: regressor("quantile", quantile=MANY).fit(X, Y),
        lambda: regressor("quantile", quantile=[0.5] * 500).fit(X, Y),
        lambda: regressor(monotonic_cst={str(i): 1 for i in range(500)}).fit(pd.DataFrame(X), Y),
        lambda: regressor(interaction_cst=[MANY]).fit(X, Y),
        lambda: regressor(categorical_features=MANY).fit(X, Y),
        lambda: BoostingClassifier(class_weight=MANY).fit(X, LABELS),
        lambda: regressor().fit(X, Y, callbacks=MANY),
        lambda: regressor().fit(X, Y, callbacks=print),
        lambda: FIFTY.fit(ROWS, ROWS[:, 0]).calibrate(np.zeros((2, 1)), [999, 999]),
    ],
)
def test_long_values_are_not_printed_whole(call):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert len(str(error.value)) < 400
    assert "\n" not in str(error.value)


def test_shown_values():
    assert shown(np.zeros((3, 2))) == "ndarray of shape (3, 2)"
    assert shown([1, 2]) == "[1, 2]"
    assert [shown(np.float64(2)), shown(np.str_("a"))] == ["2.0", "'a'"]
    assert len(shown("a" * 1000)) == 80
    assert first_few("ab") == "'a', 'b'"
    assert first_few(range(100)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 90 more"
    assert len(first_few([1000 * "a"])) == 80


def test_messages_name_only_the_first_of_many_columns():
    many = [f"column{k}" for k in range(200)]
    wide = pd.DataFrame(np.zeros((len(Y), 200)), columns=many)
    unknown = [f"unknown{k}" for k in range(200)]
    two = pd.concat([wide, wide], axis=1)
    times = wide.rename(columns={"column0": "event"})
    valid = dict.fromkeys(many, wide)
    for use in (
        lambda: regressor(categorical_features=unknown).fit(wide, Y),
        lambda: regressor().fit(two, Y),
        lambda: SURVIVAL.fit(wide, times),
        lambda: regressor().fit(wide, Y, X_val=valid, y_val={"column1": Y}),
    ):
        with pytest.raises((InvalidData, InvalidParameter), match=" and 190 more") as caught:
            use()
        assert len(str(caught.value)) < 500


# Scores of quantiles


def test_several_quantiles_have_a_score():
    levels = [0.9, 0.1, 0.5]
    model = regressor("quantile", quantile=levels).fit(X, Y)
    weight = RNG.integers(1, 3, size=60)
    for w, rows in [(None, np.arange(60)), (weight, np.repeat(np.arange(60), weight))]:
        y, predicted = Y[rows], model.predict(X[rows])

        def pinball(guess, y=y):
            return sum(
                np.maximum(q * (y - g), (q - 1) * (y - g)).mean()
                for q, g in zip(levels, guess, strict=True)
            )

        least = np.quantile(y, levels, method="inverted_cdf")
        expected = 1 - pinball(predicted.T) / pinball(least)
        assert model.score(X, Y, w) == pytest.approx(expected)


def test_scores_of_one_quantile_and_of_a_constant_target():
    model = regressor("quantile", quantile=0.9).fit(X, Y)
    score = d2_pinball_score(Y, model.predict(X), alpha=0.9)
    assert model.score(X, Y) == pytest.approx(score, rel=0.02)
    model = regressor("quantile", quantile=[0.1, 0.9]).fit(X, np.ones(60))
    assert model.score(X, np.ones(60)) == 1
    assert model.score(X, np.full(60, 2.0)) == 0


# Types


def test_methods_keep_their_signatures():
    assert inspect.signature(BoostingRegressor.fit).return_annotation == "Self"
    assert "X_val" in inspect.signature(BoostingRegressor.fit).parameters
    assert "X" in inspect.signature(BoostingClassifier.predict_proba).parameters


@pytest.mark.parametrize("decorate", [public_fit, public_methods, public_prediction])
def test_decorators_keep_the_types_of_methods(decorate):
    of, result = get_type_hints(decorate).values()
    assert isinstance(of, TypeVar)
    assert of is result


def test_logarithms_of_probabilities():
    model = BoostingClassifier(**PLAIN).fit(X, LABELS)
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    assert not hasattr(BoostingClassifier("hinge", **PLAIN).fit(X, LABELS), "predict_log_proba")


NO_FOLDS = r", after calibrate\(X_held_out, y_held_out\) if the fit had no folds"


@pytest.mark.parametrize(
    ("argument", "instead"),
    [
        ("return_std", rf"call predict_interval\(X\){NO_FOLDS}"),
        ("num_iteration", r"call first_stages\(n\)\.predict\(X\)"),
        ("raw_score", r"call predict_raw\(X\)"),
        ("pred_contribs", r"call shap_values\(X\)"),
        ("base_margin", r"call predict\(X, offset\)"),
        ("exposure", r"call predict\(X, offset=np\.log\(exposure\)\)"),
        ("alpha", r"call predict_interval\(X, coverage=1 - alpha\)"),
        ("prediction_type", r"call predict_raw\(X\) or predict\(X\)"),
        ("offsets", r"its arguments are X, offset"),
    ],
)
def test_arguments_of_predict(argument, instead):
    model = BoostingRegressor(n_estimators=2, learner="tree").fit([[0.0], [1.0]], [0, 1])
    message = rf"^BoostingRegressor\.predict has no argument '{argument}'; {instead}\.$"
    refused(TypeError, message, model.predict, [[0.0]], **{argument: True})


def test_arguments_of_other_predictions():
    model = BoostingClassifier(n_estimators=2, learner="tree").fit([[0.0], [1.0]], [0, 1])
    any_kind = r"call predict_proba\(X\), predict_log_proba\(X\) or predict_raw\(X\)\.$"
    machine = KernelBoostingRegressor(n_estimators=2).fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    for method, argument, instead in (
        (model.predict_proba, "return_std", "call"),
        (model.predict, "threshold", r"call predict_proba\(X\)\[:, 1\] > threshold\.$"),
        (model.predict_set, "alpha", r"call predict_set\(X, coverage=1 - alpha\)\.$"),
        (model.predict, "prediction_type", any_kind),
        (model.predict_raw, "prediction_type", any_kind),
        (model.predict_log_proba, "prediction_type", any_kind),
        (machine.predict_raw, "base_margin", r"its arg.* X\."),  # it has no offsets
    ):
        message = rf"{method.__name__} has no argument '{argument}'; {instead}"
        refused(TypeError, message, method, [[0.0]], **{argument: 0.2})


def test_resolved_parameters():
    model = BoostingRegressor(learner="tree", n_estimators=2, early_stopping=False).fit(X, Y)
    assert model.resolved_.max_leaf_nodes == 31
    again = BoostingRegressor(**model.resolved_.fill(model.get_params())).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    model = BoostingRegressor(learner="kernel", n_estimators=2).fit(X, Y)
    assert model.resolved_.learning_rate == 1


# Mistakes of newcomers


@pytest.mark.parametrize(
    ("estimator", "advised"),
    [
        (BoostingRegressor(), "BoostingClassifier"),
        (KernelBoostingRegressor(), "KernelBoostingClassifier"),
        (SparseKernelRidge(), "SparseKernelClassifier"),
        (AveragedKernelRidge(), "SparseKernelClassifier"),
    ],
)
def test_text_as_the_target_of_a_regressor(estimator, advised):
    message = rf"\('no' in row 0\), but must contain numbers; use {advised} for classes"
    refused(InvalidData, message, estimator.fit, X, np.where(np.arange(60) > 5, "yes", "no"))


READ = "; pass the values of the rows"


@pytest.mark.parametrize(
    ("estimator", "arguments", "message"),
    [
        (OutputKernelForestRegressor(), (X, np.array(["a"] * 60)), "; row 0 is 'a'"),
        (BoostingRegressor(), (X, "price"), f"^y is the text 'price'{READ}"),
        (BoostingRegressor(), (X, {"y": Y}), f"^y is a dict{READ} as a list"),
        (BoostingClassifier(), (X, iter(Y)), f"^y is an? .*iterator{READ} as"),
        (SURVIVAL, (X, set(Y)), f"^y is a set{READ} as a list"),
        (BoostingRegressor(), (X, Y, "balanced"), "^sample_weight is the text 'balanced'; pass"),
        (BoostingRegressor(), (iter(X), Y), r"X is an? .*iterator; pass its rows, list\(X\)"),
        (SURVIVAL, (X, TIMES.tolist()), r"^y is a list of events and times; .* np.array\("),
        (SURVIVAL, (X, (LABELS > 0, Y)), r"^y is a tuple of two arrays; pass a str.* np.array\("),
        (SparseKernelRidge(kernel="rbff"), (X, Y), r"Did you mean 'gaussian'\? Valid.* auto, "),
        (OutputKernelForestRegressor("rbf"), (X, X), r"is not known. Did you mean 'gaussian'\? V"),
        (BoostingClassifier(class_weight="balancd"), (X, LABELS), "a dict .*; got 'balancd'"),
        (BoostingClassifier(class_weight={"a": 1}), (X, LABELS), "contains 'a', but the classes"),
        (BoostingClassifier(eval_metric="rmse"), (X, LABELS), "is a metric of numbers; for class"),
    ],
)
def test_arguments_that_are_mistaken(estimator, arguments, message):
    refused((InvalidData, InvalidType, InvalidParameter), message, estimator.fit, *arguments)


def test_an_argument_like_no_other():
    with pytest.raises(InvalidType, match="fit has no argument 'cause'; its arguments are X, y, s"):
        SURVIVAL.fit(X, cause=LABELS)
    with pytest.raises(InvalidType, match=r"such as frame\[\['event', 'time'\]\]"):
        SURVIVAL.fit(X, event=LABELS, time=Y)
    with pytest.raises(InvalidType, match="'groups'; its arguments are X, y, sample_weight.$"):
        OutputKernelForestRegressor().fit(X, Y, groups=LABELS)


def test_causes_as_text():
    y = pd.DataFrame({"cause": np.where(LABELS, "death", "alive"), "time": np.abs(Y)})
    with pytest.raises(InvalidData, match=r"column 'cause' of y contains text .*\('\w+' in"):
        SURVIVAL.fit(X, y.to_records(index=False))


@pytest.mark.parametrize("event", ["dead", "yes"])
def test_events_as_words(event):
    y = pd.DataFrame({"status": np.where(LABELS, event, "alive"), "time": np.abs(Y)})
    refused(InvalidData, rf"\(bool, such as y\['status'\] == '{event}'\)", SURVIVAL.fit, X, y)


@pytest.mark.parametrize(("name", "n_events"), [("is_censored", 60), ("event", 4)])
def test_events_that_may_be_inverted(name, n_events):
    y = pd.DataFrame({name: np.arange(120) < n_events, "time": np.tile(np.abs(Y), 2)})
    with pytest.warns(DataWarning, match=rf"an event is True or 1 .* pass 1 - y\['{name}'\]"):
        SURVIVAL.fit(np.vstack([X, X]), y)


def test_one_time_of_a_survival_function():
    model = BoostingSurvival(n_estimators=2).fit(X, TIMES)
    with pytest.raises(InvalidData, match="times must be a list of one or more numbers; got 5.0"):
        model.predict_survival_function(X, 5.0)


def test_names_that_the_package_does_not_have():
    with pytest.raises(AttributeError, match=r"attribute 'BoostingRegresor'; did you mean 'Boosti"):
        hilboost.BoostingRegresor  # noqa: B018
    with pytest.raises(AttributeError, match="attribute 'xyz'$"):
        hilboost.xyz  # noqa: B018


def test_a_model_instead_of_its_path():
    with pytest.raises(InvalidType, match="path must be the path of a model file; got BoostingReg"):
        hilboost.load(regressor())


def test_scores_of_targets_some_of_which_are_missing():
    both = np.column_stack([Y, np.where(np.arange(60) % 3, X[:, 1], np.nan)])
    model = regressor().fit(X, both)
    known, predicted = ~np.isnan(both), model.predict(X)
    weight = RNG.integers(1, 3, size=60)
    for w in (None, weight):
        each = [
            r2_score(y[k], p[k], sample_weight=None if w is None else w[k])
            for y, p, k in zip(both.T, predicted.T, known.T, strict=True)
        ]
        assert model.score(X, both, w) == pytest.approx(np.mean(each))
    with pytest.raises(InvalidData, match="NaN in row 0 of target 1"):
        SparseKernelRidge(n_basis=5).fit(X, both[:, [0, 0]]).score(X, both)


def test_a_row_without_any_of_several_targets():
    Y = np.zeros((30, 2))
    Y[2, 0], Y[7] = np.nan, np.nan
    with pytest.raises(InvalidData, match="NaN in all targets of row 7; remove rows"):
        BoostingRegressor(learner="tree").fit(np.arange(30.0)[:, None], Y)


def test_a_history_is_one_line():
    model = regressor(n_estimators=3, eval_metric="mae").fit(X, Y, X_val=X, y_val=Y)
    number = r"[-+.e\d]+"
    parts = ", ".join(f"{name} {number} to {number}" for name in ("train", "validation", "mae"))
    assert re.fullmatch(f"<History of 3 stages: {parts}>", repr(model.history_))


def test_standard_deviations_of_models_that_have_none():
    model = KernelBoostingRegressor("huber", stages="sparse", n_estimators=2).fit(X, Y)
    message = "but this model has loss='huber' and sparse stages; set loss='squared_error' and st"
    refused(InvalidData, message, model.predict, X, return_std=True)


ESTIMATORS = [name for name in hilboost.__all__ if hasattr(getattr(hilboost, name), "get_params")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_attributes_of_other_libraries(name):
    make = getattr(hilboost, name)
    model = make()
    for attribute, own in peers("attributes").items():
        if not hasattr(make, attribute):
            assert not hasattr(model, attribute)
            with pytest.raises(AttributeError, match=f"^{name} has no attribute '{attribute}'; "):
                getattr(model, attribute)
            package, _, function = own.partition("(")[0].rpartition(".")
            assert package != "hilboost" or hasattr(hilboost, function)
    with pytest.raises(AttributeError, match=f"^this {name} is not fitted yet; call its method"):
        model.n_estimators_  # noqa: B018
    with pytest.raises(AttributeError, match="object has no attribute 'colour'"):
        model.colour  # noqa: B018


INSTEAD = {
    "best_iteration_": "n_estimators_",
    "evals_result_": "history_",
    "get_feature_importance": "feature_importances_",
    "feature_name_": "feature_names_in_",
    "save_model": "save",
    "calc_leaf_indexes": "apply",
    "booster_": "model_",
}


def test_what_to_use_instead_of_attributes_exists():
    model = regressor(n_estimators=2).fit(pd.DataFrame(X, columns=list("abc")), Y)
    copied = pickle.loads(pickle.dumps(clone(model).fit(X, Y)))
    for attribute, own in INSTEAD.items():
        refused(AttributeError, f"; use {own}", getattr, model, attribute)
        assert hasattr(model, own)
        assert not hasattr(copied, attribute)
        assert hasattr(copied, own) == (own != "feature_names_in_")


@pytest.mark.parametrize(
    ("estimator", "method", "own"),
    [
        (BoostingClassifier(), "predict_interval", "predict_set(X)"),
        (BoostingRegressor(), "predict_set", "predict_interval(X)"),
        (BoostingRegressor(), "predict_proba", "predict_interval(X), or BoostingClassifier for"),
        (hilboost.OutputKernelBoostingRegressor(), "predict_proba", "predict_set(X)"),
        (BoostingSurvival(), "predict_proba", "predict_survival_function(X)"),
        (BoostingSurvival(), "predict_quantile", "predict_median(X), or predict_survival_func"),
        (BoostingRegressor(), "predict_quantile", "predict_interval(X), or predict(X) with loss="),
    ],
)
def test_predictions_of_other_kinds_of_targets(estimator, method, own):
    assert not hasattr(estimator, method)
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute '{method}'; use {own}")):
        getattr(estimator, method)
    with pytest.raises(AttributeError, match="object has no attribute 'predict_set'"):
        BoostingRanker().predict_set  # noqa: B018


def test_attributes_that_a_fit_does_not_have_keep_their_own_sentence():
    model = regressor(n_estimators=2).fit(X, Y)
    with pytest.raises(AttributeError, match="learners_ is defined only for models of several"):
        model.learners_  # noqa: B018
    with pytest.raises(AttributeError, match="use sklearn.inspection.permutation_importance"):
        KernelBoostingRegressor().feature_importances_  # noqa: B018


def test_warnings_point_to_the_line_that_calls():
    frame = pd.DataFrame(X, columns=[f"column {k}" for k in range(X.shape[1])])
    model, plain = regressor(n_estimators=2).fit(frame, Y), regressor(n_estimators=2).fit(X, Y)
    for call in (
        lambda: model.predict(X),
        lambda: plain.predict(frame),
        lambda: model.score(X, Y),
        lambda: plain.fit(X, np.reshape(Y, (-1, 1))),
        lambda: plain.fit(X, Y, sample_weight=np.full(len(X), 1e-3)),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert caught
        assert {one.filename for one in caught} == {__file__}


def test_targets_of_one_name_are_refused():
    twice = pd.DataFrame(np.column_stack([Y, Y, Y]), columns=["a", "b", "a"])
    with pytest.raises(InvalidData, match="y has more than one column named 'a'; rename"):
        regressor(n_estimators=1).fit(X, twice)


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        (OutputKernelBoostingRegressor("extra_trees"), "learner='extra_trees'"),
        (OutputKernelBoostingRegressor("huber"), "loss='huber'"),
        (OutputKernelBoostingRegressor(loss="gaussian"), "output='gaussian'"),
        (BoostingRegressor("tree"), "learner='tree'"),
        (BoostingRegressor(learner="quantile"), "loss='quantile'"),
        (BoostingClassifier("balanced"), "class_weight='balanced'"),
        (BoostingSurvival("extreme"), "distribution='extreme'"),
        (KernelBoostingRegressor("gaussian"), "kernel='gaussian'"),
        (SparseKernelClassifier("gaussian"), "kernel='gaussian'"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_names_of_other_parameters(model, hint):
    y = {BoostingSurvival: TIMES, BoostingClassifier: LABELS, SparseKernelClassifier: LABELS}
    with pytest.raises(InvalidParameter, match=rf"is not known; did you mean {hint}\?$"):
        model.fit(X, y.get(type(model), Y))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_positional_parameters_name_the_class(name):
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) takes"):
        getattr(hilboost, name)("gaussian", "gaussian")
