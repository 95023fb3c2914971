"""One row a loss, learner, kernel or output space; the contract tests run over all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor
from tests.outputs import pairs as naive
from tests.reference import kernels as pairs

from hilboost import BoostingClassifier, BoostingRegressor, losses
from hilboost.core.learner import Learner
from hilboost.core.target import Target
from hilboost.kernels import (
    Additive,
    CallableKernel,
    Constant,
    Cosine,
    Delta,
    Gaussian,
    Hamming,
    Kernel,
    Laplace,
    Linear,
    ManhattanLaplace,
    Mapped,
    Matern,
    OnColumns,
    Polynomial,
    Precomputed,
    Product,
    RationalQuadratic,
    Scaled,
    SklearnKernel,
    Sum,
    Tanimoto,
)
from hilboost.learners.tree import VectorTreeLearner
from hilboost.outputs import (
    Compositions,
    Distributions,
    Graphs,
    Hierarchy,
    KernelOutput,
    LabelSets,
    PositiveMatrices,
    Rankings,
    Strings,
    Vectors,
)


@dataclass(frozen=True)
class LossCase:
    """A built-in loss.

    ``draw(rng, n)`` gives valid ``y`` (n, c).  ``estimator`` has the loss by its ``name``.
    ``hessian``: "exact", "ones" (a constant bound; the array is None) or a factor of the exact one.
    """

    id: str
    name: str
    make: Callable[[], Any]
    draw: Callable[[np.random.Generator, int], np.ndarray]
    n_outputs: int = 1
    estimator: Any = BoostingRegressor
    parameters: dict[str, Any] = field(default_factory=dict)
    hessian: float | str = 1.0
    smooth: bool = True

    def target(self, rng: np.random.Generator, n: int, weighted: bool = False) -> Target:
        """A valid target, with random weights where asked for."""
        return Target(self.draw(rng, n), rng.uniform(0.2, 3, n) if weighted else None)

    def build(self, **parameters: Any) -> Any:
        """The estimator with this loss chosen by name."""
        return self.estimator(self.name, **self.parameters, **parameters)

    def labels(self, y: np.ndarray) -> np.ndarray:
        """What the estimator's ``fit`` takes for this encoded target."""
        y = y.astype(int) if self.estimator is BoostingClassifier else y
        return y[:, 0] if y.shape[1] == 1 else y


def _normal(rng, n, columns=1):
    return rng.normal(size=(n, columns)) * 2 + 1


def _heavy(rng, n, columns=1):
    return rng.standard_t(2, size=(n, columns)) + 3


def _counts(rng, n):
    return rng.poisson(2.0, size=(n, 1)).astype(float)


def _positive(rng, n):
    return rng.gamma(2.0, 1.5, size=(n, 1))


def _claims(rng, n):
    return rng.gamma(2.0, 1.5, size=(n, 1)) * (rng.uniform(size=(n, 1)) < 0.6)


def _codes(rng, n, n_classes=2):
    codes = rng.integers(n_classes, size=n)
    codes[:n_classes] = np.arange(n_classes)
    return codes[:, None].astype(float)


def _classes(id, make, n_classes=2, **more):
    draw, n_outputs = partial(_codes, n_classes=n_classes), n_classes if n_classes > 2 else 1
    name = id.partition("-")[0]
    return LossCase(id, name, make, draw, n_outputs, BoostingClassifier, **more)


_KINK = {"hessian": "ones", "smooth": False}
_HUBER, _LEVELS = partial(losses.Huber, 0.7), (0.1, 0.5, 0.8)
_TWO_NORMAL, _TWO_HEAVY = partial(_normal, columns=2), partial(_heavy, columns=2)
LOSSES = [
    LossCase("squared_error", "squared_error", losses.SquaredError, _normal),
    LossCase("squared_error-2", "squared_error", losses.SquaredError, _TWO_NORMAL, 2),
    LossCase("absolute_error", "absolute_error", losses.AbsoluteError, _heavy, **_KINK),
    LossCase("absolute_error-2", "absolute_error", losses.AbsoluteError, _TWO_HEAVY, 2, **_KINK),
    LossCase("huber", "huber", _HUBER, _heavy, hessian="ones"),
    LossCase("huber-2", "huber", _HUBER, _TWO_HEAVY, 2, hessian="ones"),
    *(
        LossCase(
            id, "quantile", partial(losses.Quantile, level), _heavy, r, parameters=given, **_KINK
        )
        for id, level, r in (("quantile", 0.3, 1), ("quantile-3", _LEVELS, 3))
        for given in [{"quantile": level}]
    ),
    LossCase("poisson", "poisson", losses.Poisson, _counts),
    LossCase("gamma", "gamma", losses.Gamma, _positive),
    LossCase("tweedie", "tweedie", losses.Tweedie, _claims),
    _classes("log_loss-2", losses.BinomialLogLoss),
    _classes("log_loss-3", partial(losses.MultinomialLogLoss, 3), 3, hessian=3 / 2),
    _classes("squared_error-classes-2", partial(losses.OneHotSquaredError, 2)),
    _classes("squared_error-classes-3", partial(losses.OneHotSquaredError, 3), 3),
    _classes("log_loss-4", partial(losses.MultinomialLogLoss, 4), 4, hessian=4 / 3),
    _classes("exponential", losses.Exponential),
    _classes("exponential-3", partial(losses.MultinomialExponential, 3), 3, hessian=3 / 2),
    _classes("hinge-2", partial(losses.Hinge, 2), **_KINK),
    _classes("hinge-3", partial(losses.Hinge, 3), 3, **_KINK),
    _classes("squared_hinge-2", partial(losses.SquaredHinge, 2)),
    _classes("squared_hinge-3", partial(losses.SquaredHinge, 3), 3),
]


def _fractions(rng, n):
    return rng.beta(2.0, 3.0, size=(n, 1))


def _mixed_counts(rng, n):
    return rng.poisson(rng.gamma(1.0, 2.0, size=(n, 1))).astype(float)


def _distribution(loss, draw, n_outputs=2):
    return LossCase(loss.regressor_name, loss.regressor_name, loss, draw, n_outputs)


DISTRIBUTIONS = [
    _distribution(losses.Normal, _normal),
    _distribution(losses.StudentT, _heavy, 3),
    _distribution(losses.Laplace, _heavy),
    _distribution(losses.MixtureOfNormals, _normal, 5),
    _distribution(losses.LogNormal, _positive),
    _distribution(losses.GammaShape, _positive),
    _distribution(losses.Weibull, _positive),
    _distribution(losses.NegativeBinomial, _mixed_counts),
    _distribution(losses.ZeroInflatedPoisson, _mixed_counts),
    _distribution(losses.Beta, _fractions),
]


@dataclass(frozen=True)
class GroupLossCase:
    """A built-in loss that couples rows: those of groups, or all of them."""

    id: str
    make: Callable[[], Any]
    draw: Callable[[np.random.Generator, int], np.ndarray] | None = None
    has_groups: bool = True
    differentiable: bool = True


def _times(rng, n):
    time = rng.integers(1, 9, size=n).astype(float)
    upper = np.where(rng.uniform(size=n) < 0.6, time, np.inf)
    return np.column_stack([time, upper, np.floor(0.5 * time), rng.integers(2, size=n)])


GROUP_LOSSES = [
    GroupLossCase("lambdarank", losses.LambdaRank, differentiable=False),
    GroupLossCase(
        "lambdarank-linear", partial(losses.LambdaRank, 3, "linear"), differentiable=False
    ),
    GroupLossCase("lambdamap", losses.LambdaMAP, differentiable=False),
    GroupLossCase("lambdamrr", partial(losses.LambdaMRR, 3), differentiable=False),
    GroupLossCase("yetirank", losses.YetiRank, differentiable=False),
    GroupLossCase("pairwise_logistic", losses.PairwiseLogistic),
    GroupLossCase("query_rmse", losses.QueryRMSE),
    GroupLossCase("xendcg", losses.CrossEntropyNDCG),
    GroupLossCase("cox", losses.Cox, _times, has_groups=False),
    GroupLossCase("cox-efron", partial(losses.Cox, "efron"), _times, has_groups=False),
]


@dataclass(frozen=True)
class LearnerCase:
    """A base learner, as parameters of an estimator."""

    id: str
    parameters: dict[str, Any]
    is_tree: bool = False
    takes_weights: bool = True

    def learner(self) -> Learner:
        """The learner of a fit with these parameters."""
        small = PLAIN | self.parameters | {"n_estimators": 1}
        return BoostingRegressor(**small).fit(np.eye(8), np.arange(8.0)).fitted_.learner

    @property
    def grows_trees(self) -> bool:
        """Whether the base models have leaves and gains of splits."""
        return self.is_tree or self.id.startswith("vector")


LEARNERS = [
    LearnerCase("trees-separate", {"multi_output": "separate"}, is_tree=True),
    LearnerCase("trees-symmetric", {"growth": "symmetric"}, is_tree=True),
    LearnerCase("trees-shared", {"multi_output": "shared"}, is_tree=True),
    LearnerCase("trees-sketched", {"multi_output": "shared", "sketch": 1}, is_tree=True),
    LearnerCase("vector-trees", {"learner": VectorTreeLearner(max_splits=7, min_samples_leaf=2)}),
    LearnerCase(
        "vector-extra-trees", {"learner": VectorTreeLearner(max_splits=7, random_cuts=True)}
    ),
    LearnerCase("linear", {"learner": "linear"}),
    LearnerCase("ridge", {"learner": Ridge(alpha=1e-3)}),
    LearnerCase("neighbors", {"learner": KNeighborsRegressor(3)}, takes_weights=False),
    LearnerCase("sklearn-tree", {"learner": DecisionTreeRegressor(max_depth=2)}),
    LearnerCase("svr", {"learner": SVR(C=1.0)}),
    LearnerCase("pipeline", {"learner": make_pipeline(StandardScaler(), Ridge(alpha=1e-3))}),
]

TREES = [case for case in LEARNERS if case.is_tree]


@dataclass(frozen=True)
class KernelCase:
    """A kernel and its naive twin.

    ``draw(rng, n)`` gives rows (n, d); ``pair`` is the kernel of two rows.  ``single``: largest
    error of a float32 block, relative to the largest entry.  ``native``: one of hilboost's own, for
    every array library and for files.
    """

    id: str
    make: Callable[[], Kernel]
    draw: Callable[[np.random.Generator, int], np.ndarray]
    pair: Callable[[Any, Any], float]
    single: float = 1e-5
    native: bool = True


_SCALES = (0.7, 2.0, 5.0)
_MATRIX = np.array([[0.7, 0.1], [-0.3, 0.4], [0.2, -0.5]])


def _rows(rng, n):
    rows = rng.normal(size=(n, 3)) * [1, 2, 4] + [0, 3, -2]
    rows[n // 2] = rows[0]  # the same point twice
    return rows


def _fingerprints(rng, n):
    rows = (rng.uniform(size=(n, 12)) < 0.3).astype(float)
    rows[[0, n // 2]] = 0  # two empty sets
    return rows


def _categories(rng, n):
    rows = rng.integers(3, size=(n, 3)).astype(float)
    rows[rng.uniform(size=rows.shape) < 0.2] = np.nan
    return rows


def _numbers(rng, n):
    return rng.permutation(60)[:n, None].astype(float)


def _table():
    Z = np.random.default_rng(0).normal(size=(60, 4))
    return Z @ Z.T / 4


KERNELS = [
    KernelCase("gaussian", partial(Gaussian, 2.0), _rows, pairs.gaussian(2.0)),
    KernelCase("gaussian-3", partial(Gaussian, _SCALES), _rows, pairs.gaussian(_SCALES)),
    # The root of the rounding error of s² = 0.
    KernelCase("laplace", partial(Laplace, 2.0), _rows, pairs.matern(2.0, 0.5), single=5e-3),
    KernelCase("laplace-3", partial(Laplace, _SCALES), _rows, pairs.matern(_SCALES, 0.5), 5e-3),
    KernelCase("matern12", partial(Matern, 2.0, 0.5), _rows, pairs.matern(2.0, 0.5), 5e-3),
    KernelCase("matern32", partial(Matern, _SCALES, 1.5), _rows, pairs.matern(_SCALES, 1.5)),
    KernelCase("matern52", partial(Matern, 2.0, 2.5), _rows, pairs.matern(2.0, 2.5)),
    KernelCase(
        "rational_quadratic",
        partial(RationalQuadratic, _SCALES, 0.8),
        _rows,
        pairs.rational_quadratic(_SCALES, 0.8),
    ),
    KernelCase(
        "manhattan_laplace", partial(ManhattanLaplace, 2.0), _rows, pairs.manhattan_laplace(2.0)
    ),
    KernelCase(
        "manhattan_laplace-3",
        partial(ManhattanLaplace, _SCALES),
        _rows,
        pairs.manhattan_laplace(_SCALES),
    ),
    KernelCase("additive", partial(Additive, 2.0), _rows, pairs.additive(2.0, 1.0, 1.0)),
    KernelCase(
        "additive-3", partial(Additive, _SCALES, 0.3, 2.0), _rows, pairs.additive(_SCALES, 0.3, 2.0)
    ),
    KernelCase("linear", Linear, _rows, pairs.linear(0.0)),
    KernelCase("linear-offset", partial(Linear, 1.5), _rows, pairs.linear(1.5)),
    KernelCase("polynomial-1", partial(Polynomial, 1), _rows, pairs.polynomial(1, 1.0, 1.0)),
    KernelCase(
        "polynomial-2", partial(Polynomial, 2, 0.0, 0.3), _rows, pairs.polynomial(2, 0.0, 0.3)
    ),
    KernelCase(
        "polynomial-7", partial(Polynomial, 7, 0.5, 0.1), _rows, pairs.polynomial(7, 0.5, 0.1)
    ),
    KernelCase("cosine", Cosine, _fingerprints, pairs.cosine),
    KernelCase("cosine-real", Cosine, _rows, pairs.cosine),
    KernelCase("tanimoto", Tanimoto, _fingerprints, pairs.tanimoto),
    KernelCase("tanimoto-real", Tanimoto, _rows, pairs.tanimoto),
    KernelCase("delta", partial(Delta, 0.8), _categories, pairs.delta(0.8)),
    KernelCase("delta-3", partial(Delta, _SCALES), _categories, pairs.delta(_SCALES)),
    KernelCase("hamming", Hamming, _categories, pairs.hamming),
    KernelCase("constant", partial(Constant, 1.7), _rows, pairs.constant(1.7)),
    KernelCase(
        "scaled",
        lambda: Scaled(Gaussian(2.0), 1.7),
        _rows,
        pairs.product(pairs.constant(1.7), pairs.gaussian(2.0)),
    ),
    KernelCase(
        "sum",
        lambda: Sum((Matern(_SCALES, 1.5), Constant(0.3), Linear())),
        _rows,
        pairs.total(pairs.matern(_SCALES, 1.5), pairs.constant(0.3), pairs.linear(0.0)),
    ),
    KernelCase(
        "product",
        lambda: Product((Gaussian(2.0), RationalQuadratic(3.0), Linear(1.0))),
        _rows,
        pairs.product(pairs.gaussian(2.0), pairs.rational_quadratic(3.0, 1.0), pairs.linear(1.0)),
    ),
    KernelCase(
        "on_columns",
        lambda: OnColumns(Gaussian((1.0, 3.0)), (2, 0)),
        _rows,
        pairs.on_columns(pairs.gaussian((1.0, 3.0)), (2, 0)),
    ),
    KernelCase(
        "mapped",
        lambda: Mapped(RationalQuadratic((1.5, 2.5), 0.8), _MATRIX),
        _rows,
        lambda a, b: pairs.rational_quadratic((1.5, 2.5), 0.8)(a @ _MATRIX, b @ _MATRIX),
    ),
    KernelCase(
        "mapped-square",
        lambda: Mapped(Matern(2.0, 2.5), np.eye(3) - 0.3),
        _rows,
        lambda a, b: pairs.matern(2.0, 2.5)(a @ (np.eye(3) - 0.3), b @ (np.eye(3) - 0.3)),
    ),
    KernelCase(
        "mixed",
        lambda: OnColumns(Gaussian(1.0), [0]) * OnColumns(Delta((1.0, 2.0)), [1, 2]) * 2 + Linear(),
        lambda rng, n: np.column_stack([rng.normal(size=n), rng.integers(3, size=(n, 2))]),
        pairs.total(
            pairs.product(
                pairs.on_columns(pairs.gaussian(1.0), (0,)),
                pairs.on_columns(pairs.delta((1.0, 2.0)), (1, 2)),
                pairs.constant(2.0),
            ),
            pairs.linear(0.0),
        ),
    ),
    KernelCase(
        "sklearn",
        lambda: SklearnKernel(ConstantKernel(1.7) * RBF(_SCALES)),
        _rows,
        pairs.product(pairs.constant(1.7), pairs.gaussian(_SCALES)),
        native=False,
    ),
    KernelCase(
        "function",
        lambda: CallableKernel(lambda A, B: (A @ B.T + 1) ** 2),
        _rows,
        pairs.polynomial(2, 1.0, 1.0),
        native=False,
    ),
    KernelCase(
        "function-pairwise",
        lambda: CallableKernel(lambda a, b: np.exp(-((a - b) ** 2).sum() / 2), pairwise=True),
        _rows,
        pairs.gaussian(1.0),
        native=False,
    ),
    KernelCase(
        "precomputed", lambda: Precomputed(_table()), _numbers, pairs.lookup(_table()), native=False
    ),
]


@dataclass(frozen=True)
class OutputCase:
    """An output space and its naive kernel.

    ``draw(rng, n)`` gives labels, and others of the same kind for another ``rng``; ``pair`` is the
    kernel of two labels.  ``exact``: ways to decode that find any label again from its point, in
    the form ``settled`` gives it.  ``distinct``: the points of different labels differ.
    """

    id: str
    make: Callable[[], Any]
    draw: Callable[[np.random.Generator, int], Any]
    pair: Callable[[Any, Any], float]
    exact: tuple[str, ...] = ("exact",)
    settled: Callable[[Any], Any] = lambda labels: labels
    distinct: bool = True


_TAGS = ("blue", "green", "red", "white")
_TAG_WEIGHTS = {"blue": 1.0, "green": 2.0, "red": 0.5, "white": 4.0}
_SET_WAYS = ("threshold", "f1")
_PARENTS = {"cat": "pet", "dog": "pet", "pet": "animal", "elm": "tree", "oak": "tree", "ash": "elm"}
_NODES = sorted({*_PARENTS, *_PARENTS.values()})


def _plain_rows(rng, n):
    return rng.normal(size=(n, 3))


def _indicators(rng, n):
    table = (rng.uniform(size=(n, 5)) < 0.4).astype(int)
    table[:2] = [[0, 0, 0, 0, 0], [1, 1, 1, 1, 1]]
    return table


def _tag_sets(rng, n):
    sets = [{tag for tag in _TAGS if rng.uniform() < 0.4} for _ in range(n)]
    return [set(), set(_TAGS), *sets][:n]


def _permutations(rng, n, K):
    return np.array([rng.permutation(K) + 1 for _ in range(n)])


def _tied_ranks(rng, n):
    values = rng.integers(3, size=(n, 4))
    return 1 + (values[:, None, :] < values[:, :, None]).sum(axis=2)


def _samples(rng, n):
    return [rng.normal(rng.normal(), 1 + rng.uniform(), rng.integers(1, 9)) for _ in range(n)]


def _sorted_samples(rng, n):
    return np.sort(rng.normal(size=(n, 6)) + rng.normal(size=(n, 1)), axis=1)


def _shares(rng, n, smallest=0.0):
    rows = rng.gamma(0.7, size=(n, 4)) + smallest
    rows[n // 2, 1] = smallest
    return rows / rows.sum(axis=1, keepdims=True)


def _covariances(rng, n):
    roots = rng.normal(size=(n, 3, 5))
    return roots @ roots.transpose(0, 2, 1)


def _words(rng, n):
    words = ["".join(rng.choice(list("abc"), rng.integers(3, 8))) for _ in range(n)]
    return ["", *words][:n]


def _sentences(rng, n):
    tokens = ["red", "green", 7, ("a", 1)]
    drawn = [[tokens[i] for i in rng.integers(4, size=rng.integers(1, 6))] for _ in range(n)]
    return [["red", 7], ["green", ("a", 1)], (), *drawn][:n]


def _graphs(rng, n):
    """Lists, and edges in any order and direction."""
    found = [([], []), (["C"], [])]
    while len(found) < n:
        size = int(rng.integers(2, 6))
        pairs = [(int(i), int(j)) for i in range(size) for j in range(i) if rng.uniform() < 0.5]
        found.append((rng.choice(["C", "N", "O"], size).tolist(), pairs))
    return found[:n]


def _settled_graphs(graphs):
    edges = [tuple(sorted((min(edge), max(edge)) for edge in graph[1])) for graph in graphs]
    return [(tuple(graph[0]), own) for graph, own in zip(graphs, edges, strict=True)]


def _nodes(rng, n):
    return [*_NODES, *rng.choice(_NODES, n).tolist()][:n]


OUTPUTS = [
    OutputCase("vectors", Vectors, _plain_rows, naive.inner),
    OutputCase(
        "kernel",
        lambda: KernelOutput(Gaussian(2.0), tolerance=0),
        _plain_rows,
        naive.gaussian(2.0),
        exact=(),
    ),
    OutputCase("label_sets-table", LabelSets, _indicators, naive.inner, _SET_WAYS),
    OutputCase(
        "label_sets-table-weights",
        lambda: LabelSets((1, 2, 0.5, 4, 3)),
        _indicators,
        naive.weighted((1, 2, 0.5, 4, 3)),
        _SET_WAYS,
    ),
    OutputCase("label_sets", LabelSets, _tag_sets, naive.common(), _SET_WAYS),
    OutputCase(
        "label_sets-weights",
        lambda: LabelSets(_TAG_WEIGHTS),
        _tag_sets,
        naive.common(_TAG_WEIGHTS),
        _SET_WAYS,
    ),
    OutputCase("rankings-kemeny", Rankings, partial(_permutations, K=4), naive.kemeny),
    OutputCase("rankings-kemeny-9", Rankings, partial(_permutations, K=9), naive.kemeny),
    OutputCase("rankings-ties", lambda: Rankings(ties=True), _tied_ranks, naive.kemeny, exact=()),
    OutputCase(
        "rankings-spearman",
        lambda: Rankings("spearman"),
        partial(_permutations, K=5),
        naive.spearman,
    ),
    OutputCase(
        "rankings-hamming", lambda: Rankings("hamming"), partial(_permutations, K=5), naive.hamming
    ),
    OutputCase(
        "distributions",
        lambda: Distributions(16),
        _samples,
        naive.wasserstein(16),
        settled=lambda labels: np.array([naive.quantiles(label, 16) for label in labels]),
    ),
    OutputCase(
        "distributions-table", lambda: Distributions(6), _sorted_samples, naive.wasserstein(6)
    ),
    OutputCase("compositions", Compositions, _shares, naive.hellinger),
    OutputCase(
        "compositions-aitchison",
        lambda: Compositions("aitchison"),
        partial(_shares, smallest=0.01),
        naive.aitchison,
    ),
    OutputCase("spd_matrices", PositiveMatrices, _covariances, naive.log_euclidean),
    OutputCase(
        "strings",
        Strings,
        _words,
        naive.spectrum([3], True),
        exact=(),
        distinct=False,  # "aaaa" and "aaaaa"
    ),
    OutputCase(
        "strings-counts",
        lambda: Strings((1, 3), normalize=False),
        _words,
        naive.spectrum([1, 2, 3], False),
        exact=(),
        distinct=False,
    ),
    OutputCase(
        "strings-tokens",
        lambda: Strings((1, 2), string_lengths=(0, 4)),
        _sentences,
        naive.spectrum([1, 2], True),
        exact=(),
        settled=lambda labels: [tuple(label) for label in labels],
        distinct=False,
    ),
    OutputCase(
        "graphs",
        Graphs,
        _graphs,
        naive.weisfeiler_lehman(3, True),
        exact=(),
        settled=_settled_graphs,
        distinct=False,
    ),
    OutputCase(
        "graphs-counts",
        lambda: Graphs(1, normalize=False),
        _graphs,
        naive.weisfeiler_lehman(1, False),
        exact=(),
        settled=_settled_graphs,
        distinct=False,
    ),
    OutputCase(
        "hierarchies", lambda: Hierarchy(_PARENTS), _nodes, naive.path(_PARENTS, lambda depth: 1.0)
    ),
    OutputCase(
        "hierarchies-weights",
        lambda: Hierarchy(_PARENTS, weights=0.5),
        _nodes,
        naive.path(_PARENTS, lambda depth: 0.5**depth),
    ),
]


def ids(cases: list[Any]) -> list[str]:
    """For ``pytest.mark.parametrize``."""
    return [case.id for case in cases]


def cells(cases: list[Any], checks: list[str], reported: tuple[str, ...]) -> list[Any]:
    """Each case with each check of a contract; the slow one of reports with a few cases."""
    return [
        pytest.param(case, check, id=f"{case.id}-{check}")
        for case in cases
        for check in checks
        if check != "test_reporting" or case.id in reported
    ]


class Parameters(dict[str, Any]):
    """Parameters that lose those of the built-in trees where a learner joins them."""

    of_trees = ("max_leaf_nodes", "min_samples_leaf", "l2_regularization", "max_features")

    def __or__(self, other: Any) -> Any:
        kept = self if "learner" not in other else {k: self[k] for k in self.keys() - self.of_trees}
        return Parameters({**kept, **other})


PLAIN = Parameters(
    {
        "learning_rate": 0.1,
        "n_estimators": 10,
        "max_leaf_nodes": 8,
        "min_samples_leaf": 2,
        "l2_regularization": 0.0,
        "max_features": 1.0,
        "subsample": 1.0,
        "early_stopping": False,
        "random_state": 0,
    }
)
"""Parameters that follow from nothing, so that a test says what it needs."""


def model_arrays(model: Any) -> list[np.ndarray]:
    """All arrays of a fitted model of trees or of a mixture, for comparisons bit for bit."""
    history = model.fitted_.history  # forests have none
    arrays = [model.model_.initial_raw, *([] if history is None else [history.train])]
    for stage in model.model_.stages:
        for part in stage.terms:
            tree = part.model
            arrays.append(part.coefficient)
            if tree.family == "expansions":
                arrays += [tree.basis, tree.weights, tree.inputs.scale]
                continue
            arrays += [tree.column, tree.threshold, tree.missing_right, tree.child]
            arrays += [tree.gain, tree.leaf_number, tree.values]
    return arrays


def assert_same_model(one: Any, other: Any) -> None:
    """Bit for bit."""
    pairs = list(zip(model_arrays(one), model_arrays(other), strict=True))
    assert len(pairs) > 2
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)
