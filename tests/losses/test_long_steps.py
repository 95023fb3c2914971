"""Newton steps of logarithms: targets far from the initial prediction make no fit diverge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost import BoostingClassifier, BoostingRanker, BoostingRegressor, BoostingSurvival, losses
from hilboost.core.target import Target

N, LONGEST = 1000, 10.0
finite = {"allow_nan": False, "allow_infinity": False}
positive = st.floats(1e-6, 1e6, **finite)


def numbers(y):
    return Target(np.array(y)[:, None])


def classes(y):
    return Target((np.array(y)[:, None] > 1).astype(float))


def times(y):
    zeros = np.zeros(len(y))
    return Target(np.column_stack([y, y, zeros, zeros]))


def group(y):
    return Target(
        np.minimum(np.array(y)[:, None], 30.0).round(), groups=np.zeros(len(y), dtype=int)
    )


LOSSES = {
    "poisson": (losses.Poisson(), numbers, 1),
    "gamma": (losses.Gamma(), numbers, 1),
    "tweedie-1.01": (losses.Tweedie(1.01), numbers, 1),
    "tweedie-1.5": (losses.Tweedie(1.5), numbers, 1),
    "tweedie-1.99": (losses.Tweedie(1.99), numbers, 1),
    "log_loss-2": (losses.BinomialLogLoss(), classes, 1),
    "log_loss-3": (losses.MultinomialLogLoss(3), classes, 3),
    "aft-normal": (losses.AFT("normal", 1.0), times, 1),
    "aft-logistic": (losses.AFT("logistic", 1.0), times, 1),
    "aft-extreme": (losses.AFT("extreme", 1.0), times, 1),
    "cox": (losses.Cox(), times, 1),
    "xendcg": (losses.CrossEntropyNDCG(), group, 1),
    "pairwise_logistic": (losses.PairwiseLogistic(), group, 1),
    "lambdarank": (losses.LambdaRank(), group, 1),
    "yetirank": (losses.YetiRank(), group, 1),
    "lambdamap": (losses.LambdaMAP(), group, 1),
    "lambdamrr": (losses.LambdaMRR(), group, 1),
}


@pytest.mark.parametrize("name", LOSSES)
@given(y=st.lists(positive, min_size=2, max_size=9), data=st.data())
def test_newton_steps_are_bounded(name, y, data):
    loss, target, r = LOSSES[name]
    scores = st.lists(st.floats(-30, 30, **finite), min_size=r * len(y), max_size=r * len(y))
    raw = np.array(data.draw(scores)).reshape(len(y), r)
    found = loss.gradients(target(y), raw)
    assert (np.abs(found.negative_gradient) <= (1 + 1e-9) * LONGEST * found.hessian).all()


def far_rates(scale, share, rng):
    """Logarithms of rates: of a continuous feature, or much larger in few rows."""
    X = rng.normal(size=(N, 3))
    X[:, 2] = rng.uniform(size=N) < share
    return X, scale * X[:, 0] if share == 0 else scale * X[:, 2]


def regression(loss):
    def fit(X, logs, settings, rng):
        rates = np.exp(logs)
        y = rng.poisson(rates) + 0.0 if loss == "poisson" else rates * rng.gamma(1.0, 1.0, N) + 1e-9
        y[0] += 1.0
        return BoostingRegressor(loss, **settings).fit(X, y)

    return fit


def classification(n_classes, loss="log_loss"):
    def fit(X, logs, settings, rng):
        odds = np.exp(np.clip(logs - 6, -30, 0))
        y = (rng.uniform(size=N) < odds) * rng.integers(1, n_classes, size=N)
        y[:n_classes] = np.arange(n_classes)
        return BoostingClassifier(loss=loss, **settings).fit(X, y)

    return fit


def survival(loss, **parameters):
    def fit(X, logs, settings, rng):
        time = np.exp(-logs) * rng.exponential(size=N) + 1e-9
        until = np.quantile(time, 0.7)
        upper = np.where(time < until, time, np.inf)
        y = np.column_stack([np.minimum(time, until), upper])
        return BoostingSurvival(loss, **parameters, **settings).fit(X, y)

    return fit


def ranking(loss):
    def fit(X, logs, settings, rng):
        groups = np.arange(N) // 100
        labels = np.digitize(logs + rng.normal(size=N), [-1.0, 1.0, 3.0])
        return BoostingRanker(loss, **settings).fit(X, labels, groups=groups)

    return fit


FITS = {
    "poisson": regression("poisson"),
    "gamma": regression("gamma"),
    "tweedie": regression(losses.Tweedie(1.05)),
    "two classes": classification(2),
    "three classes": classification(3),
    "exponential": classification(30, "exponential"),
    "cox": survival("cox"),
    "logistic times": survival("aft", distribution="logistic"),
    "extreme times": survival("aft", distribution="extreme"),
    "discrete hazards": survival("discrete_hazard"),
    "pairs": ranking("pairwise_logistic"),
    "lists": ranking("xendcg"),
}


@pytest.mark.parametrize("name", FITS)
@given(
    scale=st.floats(1, 8),
    share=st.sampled_from([0.0, 0.003, 0.01, 0.1]),
    seed=st.integers(0, 99),
    settings=st.fixed_dictionaries(
        {
            "learning_rate": st.sampled_from([0.05, 0.1, 0.3]),
            "l2_regularization": st.sampled_from([0.0, 1.0]),
            "min_samples_leaf": st.sampled_from([1, 20]),
        }
    ),
)
def test_training_losses_fall(name, scale, share, seed, settings):
    rng = np.random.default_rng(seed)
    settings |= {"learner": "tree", "early_stopping": False, "n_estimators": 12, "n_jobs": 1}
    X, logs = far_rates(scale, share, rng)
    losses = FITS[name](X, logs, settings | {"random_state": 0}, rng).history_.train
    rise, fall = np.diff(losses).max(), losses[0] - losses[-1]
    assert rise <= 0.05 * fall + 1e-12
