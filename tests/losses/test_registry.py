"""Built-in losses are found in their modules and declare their names and links."""

import pkgutil
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pytest
from scipy.special import expit, softmax
from tests.cases import LOSSES, ids

import hilboost.losses
from hilboost.core.errors import InvalidParameter
from hilboost.core.link import IdentityLink, LogitLink, LogLink, ScoresLink, SoftmaxLink, SortedLink
from hilboost.core.loss import Loss
from hilboost.losses import BinomialLogLoss, LambdaRank, Poisson, Quantile, SquaredError, Tweedie
from hilboost.losses.registry import (
    classification_losses,
    gives_probabilities,
    loss_classes,
    make_classification_loss,
    regression_losses,
)

NAMES = {"regressor_name", "classifier_name", "ranker_name", "survival_name"}


def test_every_class_with_a_name_is_found():
    named = set()
    for module in pkgutil.iter_modules(hilboost.losses.__path__):
        for value in vars(import_module(f"hilboost.losses.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Loss):
                own = vars(value)
                if NAMES & {k for k in own if own[k] is not None}:
                    named.add(value)
    assert named == set(loss_classes().values())


def test_names_are_unique():
    regressors = [loss.regressor_name for loss in loss_classes().values() if loss.regressor_name]
    assert sorted(regressors) == sorted(regression_losses())
    for losses in classification_losses().values():
        for n_classes in range(2, 6):
            taking = [
                loss
                for loss in losses
                if loss.n_classes_range[0] <= n_classes <= (loss.n_classes_range[1] or n_classes)
            ]
            assert len(taking) <= 1


def test_a_name_that_takes_two_classes_refuses_one():
    assert type(make_classification_loss("log_loss", 2)) is BinomialLogLoss
    with pytest.raises(InvalidParameter, match=r"supports two .*classes; y has 1"):
        make_classification_loss("log_loss", 1)


@pytest.mark.parametrize("name", sorted(classification_losses()))
def test_losses_say_before_the_fit_whether_they_give_probabilities(name):
    made = [make_classification_loss(name, n_classes) for n_classes in (2, 3)]
    assert {gives_probabilities(loss) for loss in made} == {gives_probabilities(name)}
    assert gives_probabilities(name) == (name not in ("hinge", "squared_hinge"))


def computed(link, raw):
    """A naive twin: what a link's record says, in NumPy."""
    kind = type(link)
    if kind is IdentityLink:
        return raw
    if kind is LogLink:
        return np.exp(np.clip(raw, -link.bound, link.bound))
    if kind is LogitLink:
        return expit(link.factor * np.array([-1.0, 1.0]) * raw)
    if kind is SoftmaxLink:
        return softmax(link.factor * raw, axis=1)
    if kind is SortedLink:
        return np.sort(raw, axis=1)[:, np.argsort(np.argsort(link.levels))]
    assert kind is ScoresLink
    return np.array([-1.0, 1.0]) * raw if link.n_classes == 2 else raw


@pytest.mark.parametrize(
    ("make", "n_outputs"),
    [
        *[pytest.param(case.make, case.n_outputs, id=case.id) for case in LOSSES],
        pytest.param(lambda: Quantile([0.9, 0.1, 0.5]), 3, id="quantiles-in-any-order"),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_the_declared_link_is_the_inverse_link(make, n_outputs, scale):
    raw = scale * np.random.default_rng(0).normal(size=(50, n_outputs))
    loss = make()
    np.testing.assert_allclose(loss.inverse_link(raw), computed(loss.link, raw), rtol=1e-10)
    assert loss.link.n_outputs in (None, n_outputs)
    predicted = loss.inverse_link(raw)
    sums_to_one = predicted.shape[1] > 1 and np.allclose(predicted.sum(axis=1), 1)
    if isinstance(loss.link, LogitLink | SoftmaxLink | ScoresLink):
        assert loss.link.gives_probabilities == sums_to_one


def test_a_class_that_overrides_the_inverse_link_has_no_known_link():
    class Rooted(SquaredError):
        def inverse_link(self, raw):
            return np.sqrt(np.abs(raw))

    class Further(Rooted):
        pass

    class Mixin:
        def inverse_link(self, raw):
            return raw + 1

    class Mixed(Mixin, Poisson):
        pass

    for loss in (Rooted(), Further(), Mixed()):
        assert loss.link is None


def test_a_class_inherits_the_link_with_the_inverse_link_and_not_the_names():
    class Derived(Poisson):
        pass

    @dataclass(frozen=True)
    class Doubled(LogLink):
        pass

    class Declared(SquaredError):
        @property
        def link(self):
            return Doubled(3.0)

        def inverse_link(self, raw):
            return 2 * np.exp(raw)

    assert Derived().link == Poisson().link
    assert Derived.regressor_name is None
    assert Declared().link == Doubled(3.0)
    assert Derived not in loss_classes().values()


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Possion'"):
        _ = hilboost.losses.Possion
    assert ids(LOSSES)


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (SquaredError(), "SquaredError()"),
        (Tweedie(1.2), "Tweedie(power=1.2)"),
        (LambdaRank(3), "LambdaRank(k=3, gain='exponential')"),
    ],
)
def test_the_text_of_a_loss_is_how_it_is_made(loss, text):
    assert repr(loss) == text
