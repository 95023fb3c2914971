"""What every built-in loss promises."""

import pytest
from tests.cases import DISTRIBUTIONS, GROUP_LOSSES, LOSSES, cells, ids

import hilboost.losses
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.loss import Loss
from hilboost.core.loss_kinds import AdaptiveLoss, LeafLoss
from hilboost.losses import AFT, DiscreteHazard, DistributionLoss
from hilboost.losses.registry import classification_losses, loss_classes, regression_losses
from hilboost.testing import DistributionContract, GroupLossContract, LossContract

all_losses = pytest.mark.parametrize("case", LOSSES, ids=ids(LOSSES))


class OfCase(LossContract):
    def __init__(self, case):
        self.case = case
        self.classifier = case.estimator is BoostingClassifier
        self.hessian = "bound" if case.hessian == "ones" else case.hessian
        # Huber's delta changes from stage to stage; its leaves take one step from the median.
        self.monotone = self.best_leaves = case.name != "huber"

    def make(self):
        return self.case.make()

    def targets(self, rng, n):
        return self.case.draw(rng, n)


REPORTED = (  # by the sections of a report
    *("squared_error-2", "absolute_error", "quantile-3", "poisson", "log_loss-2", "log_loss-3"),
    *("hinge-3", "normal", "negative_binomial", "beta"),
)


@pytest.mark.parametrize(("case", "check"), cells(LOSSES, LossContract.checks(), REPORTED))
def test_contract(case, check):
    getattr(OfCase(case), check)()


class OfDistribution(DistributionContract):
    def __init__(self, case):
        self.case = case
        self.information = "bound" if case.name == "mixture_of_normals" else "exact"

    def make(self):
        return self.case.make()


of_distributions = cells(DISTRIBUTIONS, DistributionContract.checks(), REPORTED)


@pytest.mark.parametrize(("case", "check"), of_distributions)
def test_contract_of_distributions(case, check):
    getattr(OfDistribution(case), check)()


class OfGroupCase(GroupLossContract):
    def __init__(self, case):
        self.case, self.has_groups = case, case.has_groups
        self.differentiable = case.differentiable

    def make(self):
        return self.case.make()

    def targets(self, rng, n):
        return super().targets(rng, n) if self.case.draw is None else self.case.draw(rng, n)


@pytest.mark.parametrize("case", GROUP_LOSSES, ids=ids(GROUP_LOSSES))
@pytest.mark.parametrize("check", GroupLossContract.checks())
def test_contract_of_losses_over_groups(case, check):
    getattr(OfGroupCase(case), check)()


def test_every_public_loss_has_a_row():
    public = {
        value
        for name in hilboost.losses.__all__
        if issubclass(value := getattr(hilboost.losses, name), Loss)
    } - {Loss, AdaptiveLoss, DistributionLoss, LeafLoss}
    registered = set(loss_classes().values())
    cases = [*LOSSES, *DISTRIBUTIONS, *GROUP_LOSSES]
    rows = {type(case.make()) for case in cases}
    assert public <= registered == rows | {AFT, DiscreteHazard}  # of survival times


@pytest.mark.parametrize(
    ("estimator", "names"),
    [(BoostingClassifier, classification_losses), (BoostingRegressor, regression_losses)],
)
def test_every_loss_name_of_an_estimator_has_a_row(estimator, names):
    cases = [*LOSSES, *DISTRIBUTIONS]
    assert set(names()) == {case.name for case in cases if case.estimator is estimator}


@all_losses
def test_a_hessian_of_ones_is_none(case):
    loss, target, raw = OfCase(case).draw()
    hessian = loss.gradients(target, raw).hessian
    assert raw.shape[1] == case.n_outputs
    assert (hessian is None) == (case.hessian == "ones" or case.name == "squared_error")
