"""The shipped contract tests pass what keeps its contract, and name what does not."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.model.own_parts import Cauchy, Slopes, Weighted

from hilboost import Loss
from hilboost.core.base_model import Term
from hilboost.core.capabilities import RowDivision
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.output_space import Embedding, OutputSpace
from hilboost.kernels import Gaussian, Kernel
from hilboost.losses import (
    AbsoluteError,
    BinomialLogLoss,
    Poisson,
    Quantile,
    QueryRMSE,
    SquaredError,
)
from hilboost.outputs import Candidates, Rankings, decode
from hilboost.testing import (
    BoostingContract,
    Contract,
    GroupLossContract,
    KernelContract,
    LearnerContract,
    LossContract,
    OutputSpaceContract,
)

pytest_plugins = ("pytester",)

RNG = np.random.default_rng(0)
RANKINGS = np.array([RNG.permutation(4) + 1 for _ in range(60)])


def own_checks(contract):
    """Checks of the part itself, without those of a model with it, which take longer."""
    return [name for name in contract.checks() if name not in BoostingContract.checks()]


class WrongSign(SquaredError):
    def gradients(self, target, raw):
        return Gradients(raw - target.y)


class WrongHessian(SquaredError):
    def gradients(self, target, raw):
        return Gradients(target.y - raw, np.full_like(raw, 0.5))


class ShortSteps(Poisson):
    def gradients(self, target, raw):
        found = super().gradients(target, raw)
        return replace(found, hessian=np.maximum(found.hessian, np.abs(found.negative_gradient)))


class UnweightedStart(SquaredError):
    def initial_raw(self, target):
        return target.y.mean(axis=0)


class MeanOfRows(SquaredError):
    def value(self, target, raw):
        return super().value(target, raw) + 0 * raw.mean() + 1e-3 * target.y.mean()


class Overflowing(SquaredError):
    def value(self, target, raw):
        return super().value(target, raw) + 0 * np.exp(raw)[:, 0]


class ChangesRaw(SquaredError):
    def inverse_link(self, raw):
        raw += 1
        return raw


class OtherValue(SquaredError):
    def value_and_gradients(self, target, raw, memory=None):
        return 2 * self.value(target, raw), self.gradients(target, raw)


class NoNumbers(SquaredError):
    checked_by_value = True

    def value_and_gradients(self, target, raw, memory=None):
        value, found = super().value_and_gradients(target, raw, memory)
        return np.nan_to_num(value), found


class WorseLeaves(AbsoluteError):
    def leaf_values(self, target, raw, leaves, n_leaves, columns):
        return 0.5 * super().leaf_values(target, raw, leaves, n_leaves, columns)


class OneSided(Quantile):
    symmetric = True

    def __init__(self):
        super().__init__(0.3)


class NoProbabilities(BinomialLogLoss):
    def inverse_link(self, raw):
        return 2 * super().inverse_link(raw)


@pytest.mark.filterwarnings("ignore:overflow encountered in exp", "ignore:invalid value")
@pytest.mark.parametrize(
    ("loss", "check", "options"),
    [
        (WrongSign, "test_gradient_is_the_derivative", {}),
        (WrongHessian, "test_hessian_is_the_derivative", {}),
        (WrongHessian, "an upper bound on the second derivative", {"hessian": "bound"}),
        (ShortSteps, "raised to at most 0.1 times the size", {}),
        (UnweightedStart, "test_start_minimizes", {}),
        (MeanOfRows, "test_a_row_depends_on_itself", {}),
        (Overflowing, "test_far_away", {}),
        (OtherValue, "test_value_and_gradients", {}),
        (NoNumbers, "test_gradients_checked_by_the_value", {}),
        (ChangesRaw, "test_inputs_are_not_changed", {}),
        (WorseLeaves, "test_leaf_values_are_the_best", {"hessian": "bound"}),
        (OneSided, "depends on the sign", {"hessian": "bound"}),
        (NoProbabilities, "one probability per class", {"classifier": True}),
    ],
)
def test_mistakes_of_losses_are_found(loss, check, options):
    y = [39 * [0.0] + [300.0]] if issubclass(loss, Poisson) else []
    LossContract.of(loss.__mro__[1](), *y, **options).run(own_checks(LossContract))
    with pytest.raises(AssertionError, match=rf"^{loss.__name__} fails .*{check}"):
        LossContract.of(loss(), *y, **options).run(own_checks(LossContract))


class Coupled(QueryRMSE):
    """Derives value and gradient from the residuals, which mistakes change."""

    couples_rows = True

    def residuals(self, target, raw):
        return super().gradients(target, raw).negative_gradient[:, 0]

    def value(self, target, raw):
        return 0.5 * self.residuals(target, raw) ** 2

    def gradients(self, target, raw):
        return Gradients(self.residuals(target, raw)[:, None])


class Undeclared(Coupled):
    couples_rows = False


class Flat(Coupled):
    def value(self, target, raw):
        return super().value(target, raw)[:, None]


class InPlace(Coupled):
    def value(self, target, raw):
        raw += 1
        return super().value(target, raw)


class Doubled(Coupled):
    def value(self, target, raw):
        return 2 * super().value(target, raw)


class OfAllRows(Coupled):
    def residuals(self, target, raw):
        residual = target.y[:, 0] - raw[:, 0]
        return residual - residual.mean()


class FirstRowCounts(Coupled):
    def residuals(self, target, raw):
        residual = target.y[:, 0] - raw[:, 0]
        first = residual[target.starts[:-1]]
        return residual - np.repeat(first, np.diff(target.starts))


class Huge(Coupled):
    def value(self, target, raw):
        return super().value(target, raw) + 0 * np.exp(np.abs(raw[:, 0]))


class HeedsZeroWeights(OfAllRows):
    """All rows are coupled, and weights ignored."""


@pytest.mark.filterwarnings("ignore:overflow encountered in exp", "ignore:invalid value")
@pytest.mark.parametrize(
    ("loss", "check", "has_groups"),
    [
        (Undeclared, "test_the_declaration", True),
        (Flat, "test_shapes", True),
        (InPlace, "test_inputs_are_not_changed", True),
        (Doubled, "test_gradient_is_the_derivative", True),
        (OfAllRows, "test_a_group_depends_on_itself", True),
        (FirstRowCounts, "test_order_of_the_rows|test_gradient_is", True),
        (HeedsZeroWeights, "test_rows_of_zero_weight", False),
        (Huge, "test_far_away", True),
    ],
)
def test_mistakes_of_losses_over_groups_are_found(loss, check, has_groups):
    contract = GroupLossContract.of(loss(), has_groups=has_groups)
    with pytest.raises(AssertionError, match=rf"^{loss.__name__} fails .*({check})"):
        contract.run()


@dataclass(frozen=True)
class NotSymmetric(Kernel):
    def block(self, A, B):
        return np.exp(A[:, None, 0] - B[None, :, 0])

    def diag(self, A):
        return np.ones(len(A))


@dataclass(frozen=True)
class Negative(Cauchy):
    def block(self, A, B):
        return -super().block(A, B)


@dataclass(frozen=True)
class WrongDiagonal(Cauchy):
    def diag(self, A):
        return np.full(len(A), 2.0)


@dataclass(frozen=True)
class SinglePrecision(Cauchy):
    def block(self, A, B):
        return super().block(A, B).astype(np.float32)


@dataclass(frozen=True)
class NoSlope(Cauchy):
    @property
    def log_parameters(self):
        return np.log([self.scale])

    def with_log_parameters(self, theta):
        return replace(self, scale=float(np.exp(theta[0])))

    def parameter_gradient(self, A, W):
        return np.zeros(1)


@pytest.mark.parametrize(
    ("kernel", "check"),
    [
        (NotSymmetric, "must be symmetric"),
        (Negative, "must be positive semidefinite"),
        (WrongDiagonal, "test_diag"),
        (SinglePrecision, "float32"),
        (NoSlope, "test_contraction"),
    ],
)
def test_mistakes_of_kernels_are_found(kernel, check):
    with pytest.raises(AssertionError, match=rf"^{kernel.__name__} fails .*{check}"):
        KernelContract.of(kernel()).run(own_checks(KernelContract))


class Shrunk(Slopes):
    def fit(self, data, gradients, sample, rng):
        (one,) = super().fit(data, gradients, sample, rng)
        part = Term(one.term.model, one.term.columns, one.term.coefficient / 10)
        return [FittedTerm(part, outputs=one.outputs)]


class OtherOutputs(Slopes):
    def fit(self, data, gradients, sample, rng):
        (one,) = super().fit(data, gradients, sample, rng)
        return [FittedTerm(one.term, outputs=one.outputs + 1)]


class Global(Slopes):
    def fit(self, data, gradients, sample, rng):
        noise = np.random.default_rng().normal(size=gradients.negative_gradient.shape)
        return super().fit(data, Gradients(gradients.negative_gradient + noise), sample, rng)


class Uphill(Slopes):
    def fit(self, data, gradients, sample, rng):
        return super().fit(data, Gradients(-gradients.negative_gradient), sample, rng)


class Sampled(Slopes):
    """Keeps to the sample and heeds weights, which `Slopes` does not."""

    def fit(self, data, gradients, sample, rng):
        weight = np.ones(len(data)) if sample.weight is None else sample.weight
        if sample.rows is not None:
            weight = weight * np.isin(np.arange(len(data)), sample.rows)
        R = weight[:, None] * gradients.negative_gradient
        gram = (data.T * weight) @ data + self.ridge * np.eye(data.shape[1])
        model = self._model(np.linalg.solve(gram, data.T @ R))
        part = Term.of(model, slice(0, R.shape[1]))
        return [FittedTerm(part, outputs=model.predict_raw(data))]

    def _model(self, slopes):
        (one,) = super().fit(np.ones((2, 1)), Gradients(np.ones((2, slopes.shape[1]))), None, None)
        return replace(one.term.model, slopes=slopes, offset=np.zeros(slopes.shape[1]))


class Ranges(RowDivision):
    """Divides inputs by rows."""

    def divided(self, data, ranges):
        return [data[rows] for rows in ranges]

    def joined(self, parts):
        return np.concatenate(parts)

    def prepared_like(self, data, X):
        return X

    def add_outputs(self, data, terms, raw, n_threads):
        for term in terms:
            raw[:, term.columns] += term.coefficient * term.model.predict_raw(data)


class WithoutCoefficients(Ranges):
    def add_outputs(self, data, terms, raw, n_threads):
        super().add_outputs(data, [replace(term, coefficient=1.0) for term in terms], raw, 1)


class OnKnownRows(Ranges):
    def prepared_like(self, data, X):
        return data


class Undivided(Ranges):
    def divided(self, data, ranges):
        return [data for _ in ranges]


class Reversed(Ranges):
    def joined(self, parts):
        return np.concatenate(parts[::-1])


class Divided(Sampled):
    capabilities = replace(Sampled().capabilities, row_division=Ranges())


def divided_by(division):
    """Return a learner with this division of its data, which are the inputs."""
    supported = replace(Divided.capabilities, row_division=division())
    return type(division.__name__, (Divided,), {"capabilities": supported})


@pytest.mark.parametrize("learner", [Sampled, Divided])
def test_learners_that_keep_their_contract_pass(learner):
    LearnerContract.of(learner()).run()


@pytest.mark.parametrize(
    ("learner", "check"),
    [
        (Shrunk, "terms with coefficients of one"),
        (OtherOutputs, "must equal the outputs returned by fit"),
        (Global, "with the same seed must give equal models"),
        (Uphill, "must be a descent direction"),
        (Slopes, "test_rows_outside_of_the_sample"),
        (divided_by(Undivided), "test_parts_of_the_data"),
        (divided_by(WithoutCoefficients), "add_outputs must add the outputs of the base models"),
        (divided_by(OnKnownRows), "prepared_like must return data of the given rows"),
        (divided_by(Reversed), "joined must return the data of the rows of all parts"),
    ],
)
def test_mistakes_of_learners_are_found(learner, check):
    with pytest.raises(AssertionError, match=rf"^{learner.__name__} fails .*{check}"):
        LearnerContract.of(learner()).run(own_checks(LearnerContract))


@dataclass(frozen=True)
class Turns(OutputSpace):
    """Angles as points of a circle."""

    def fit(self, labels):
        return TurnsEmbedding(_angles(labels))


@dataclass(frozen=True)
class TurnsEmbedding(Embedding):
    training: np.ndarray
    ways = ("exact", "nearest")

    def encode(self, labels):
        angles = _angles(labels)
        return np.column_stack([np.cos(angles), np.sin(angles)])

    def decode(self, raw, way, candidates=None):
        return decode(self, raw, way, candidates, self._own, formula=self._formula)

    def _own(self):
        return Candidates.of(self.training, self.encode(self.training))

    def _formula(self, raw):
        return np.arctan2(raw[:, 1], raw[:, 0])


def _angles(labels):
    for row, label in enumerate(labels):
        if not isinstance(label, float) or not np.isfinite(label):
            raise InvalidData(f"row {row} of Y is {label!r:.40}; give a finite angle.")
    if len(labels) == 0:
        raise InvalidData("Y is empty; give at least one angle.")
    return np.array(labels, dtype=float)


class HalfTurns(Turns):
    def fit(self, labels):
        return HalfTurnsEmbedding(_angles(labels))


class HalfTurnsEmbedding(TurnsEmbedding):
    def _formula(self, raw):
        return super()._formula(raw) / 2


class Unchecked(Turns):
    def fit(self, labels):
        return TurnsEmbedding(np.asarray(labels, dtype=float))


ANGLES = RNG.uniform(-3, 3, size=60)


def test_output_spaces_that_keep_their_contract_pass():
    OutputSpaceContract.of(Turns(), ANGLES, exact=("exact",)).run()
    OutputSpaceContract.of(Rankings(), RANKINGS, exact=("exact",)).run()


@pytest.mark.parametrize(
    ("space", "check"),
    [
        (HalfTurns, "must recover each label from its point"),
        (Unchecked, "in row 3 must be rejected"),
    ],
)
def test_mistakes_of_output_spaces_are_found(space, check):
    contract = OutputSpaceContract.of(space(), ANGLES, exact=("exact",))
    with pytest.raises(AssertionError, match=rf"^{space.__name__} fails .*{check}"):
        contract.run(own_checks(OutputSpaceContract))


@pytest.mark.slow
def test_parts_that_keep_their_contract_pass():
    KernelContract.of(Cauchy(2.0)).run()
    KernelContract.of(Gaussian(1.5), RNG.normal(size=(50, 2))).run()
    LossContract.of(SquaredError(), RNG.normal(size=(100, 2))).run()
    X = RNG.normal(size=(60, 3))
    LearnerContract.of(Sampled(), X, X[:, :1] + X[:, 1:2] ** 2).run()


def test_parts_that_no_file_can_name():
    class Local(SquaredError):
        pass

    LossContract.of(Local(), saved=False).run()
    with pytest.raises(AssertionError, match=r"^Local fails test_saving_and_loading: .*module"):
        LossContract.of(Local()).run()
    with pytest.raises(AssertionError, match="must raise an error, .* No exception was raised"):
        LossContract.of(SquaredError(), saved=False).run()


def test_files_name_all_classes_of_ones_own():
    class Outside(LossContract):
        def make(self):
            return Weighted(np.array([2.0]))

        test_hessian_is_the_derivative_of_the_gradient = None

    assert "test_hessian_is_the_derivative_of_the_gradient" not in Outside.checks()
    Outside().test_saving_and_loading()


def test_other_errors_name_the_check():
    class Broken(Loss):
        def initial_raw(self, target):
            raise KeyError("y")

        value = gradients = initial_raw

    with pytest.raises(AssertionError, match=r"^Broken fails test_\w+: KeyError: 'y'"):
        LossContract.of(Broken(), saved=False).run()


def test_what_is_missing_is_asked_for():
    with pytest.raises(NotImplementedError, match=r"Contract.make must return the object"):
        Contract().make()
    with pytest.raises(NotImplementedError, match="labels must return valid labels"):
        OutputSpaceContract().labels(RNG, 3)
    with pytest.raises(InvalidData, match="X was passed without y"):
        LearnerContract.of(Slopes(), np.zeros((4, 2)))
    with pytest.raises(InvalidParameter, match=r"attribute='save' is not known.*'saved'"):
        LossContract.of(SquaredError(), save=False)


def test_pytest_collects_subclasses(pytester):
    pytester.makepyfile(
        "from hilboost.losses import SquaredError\n"
        "from hilboost.testing import LossContract\n"
        "class TestMine(LossContract):\n"
        "    def make(self):\n"
        "        return SquaredError()\n"
    )
    done = pytester.runpytest_inprocess("--collect-only", "-q", "-p", "no:cacheprovider")
    assert f"{len(LossContract.checks())} tests collected" in done.stdout.str()
