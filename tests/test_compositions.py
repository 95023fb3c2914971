"""Every cell of the tables of docs/compositions.md.

A cell with ● is a combination that works; a test fits it, and predicts.  A cell with a number
refers to the list below the table: the combination raises an error whose message contains the
quotation.
"""

import re
import warnings
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KNeighborsRegressor
from tests.cases import DISTRIBUTIONS, OUTPUTS
from tests.reloaded import reloaded

from hilboost import (
    AveragedKernelRidge,
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    Loss,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
    kernels,
    to_onnx,
)
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import HilboostError
from hilboost.core.gradients import Gradients
from hilboost.losses import DistributionLoss
from hilboost.losses.registry import (
    classification_losses,
    distance_losses,
    ranking_losses,
    regression_losses,
    survival_losses,
)
from hilboost.network import NetworkCompletion
from hilboost.outputs import OUTPUT_NAMES

PAGE = Path(__file__).parent.parent / "docs" / "compositions.md"
N = 40
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.exp(0.3 * X[:, 0] + np.sin(X[:, 1]))  # positive, for every loss
POSSIBLE = {"beta": Y / (1 + Y)} | {
    name: np.floor(Y) for name in ("negative_binomial", "zero_inflated_poisson")
}
CLASSES = np.digitize(Y, [0.7, 1.5])
FEW = {"n_estimators": 3, "random_state": 0}
MODELS = {
    "regression": (BoostingRegressor, Y, {}),
    "classes": (BoostingClassifier, CLASSES, {}),
    "survival": (BoostingSurvival, np.column_stack([Y, np.where(X[:, 2] < 1, Y, np.inf)]), {}),
    "ranking": (BoostingRanker, CLASSES, {"groups": np.arange(N) // 8}),
}
GAUSSIAN = kernels.Gaussian(2.0)
MACHINE = {"kernel": GAUSSIAN, "regularization": 0.1, "random_state": 0}


class Cauchy(Loss):
    """``log(1 + r²) / 2``, a user's loss of the distance."""

    symmetric = True

    def initial_raw(self, target):
        return np.array([np.median(target.y)])

    def value(self, target, raw):
        return np.log1p((target.y - raw)[:, 0] ** 2) / 2

    def gradients(self, target, raw):
        residual = target.y - raw
        return Gradients(residual / (1 + residual**2))


class Gumbel(DistributionLoss):
    """A user's distribution."""

    parameters = {"location": "location", "scale": "scale"}

    def scipy(self, p):
        return stats.gumbel_r(*p)


def quadratic(A, B):
    return (A @ B.T + 1) ** 2


_GIVEN = {"kernel": GAUSSIAN, "regularization": 0.1}
LEARNERS = {
    "trees": "tree",
    "kernel machine": KernelBoostingRegressor(**_GIVEN),
    "linear": "linear",
    "list of these": ["tree", KernelBoostingRegressor(**_GIVEN), "linear"],
    "any regressor": KNeighborsRegressor(3),
}
LEARNERS_OF_OUTPUTS = LEARNERS | {"trees": "ok3", "random trees": "extra_trees"}
CONTINUED = LEARNERS | {
    "full stages": KernelBoostingRegressor(stages="full", **_GIVEN),
    "list of kernels": KernelBoostingRegressor(
        kernel=[GAUSSIAN, kernels.Linear()], regularization=0.1
    ),
    "list with a regressor": ["tree", KNeighborsRegressor(3)],
    "`reweight=True`": KernelBoostingRegressor(reweight=True, n_basis=10, **_GIVEN),
    "`reweight=True`, list of kernels": KernelBoostingRegressor(
        kernel=[GAUSSIAN, kernels.Linear()], regularization=0.1, reweight=True, n_basis=10
    ),
}
STAGES = {
    name: {"stages": name} | ({} if name == "full" else {"n_basis": 10})
    for name in ("full", "sparse", "block")
}
_LOSSES = {"regression": regression_losses(), "classes": classification_losses()}
BY_NAME = {  # what "every name" stands for, by the title of the table and the kind of the row
    "Losses and learners": _LOSSES | {"ranking": ranking_losses(), "survival": survival_losses()},
    "Losses and kernel machines": _LOSSES,
    "Kernels": {"": kernels.KERNEL_NAMES},
    "Output spaces": {"": OUTPUT_NAMES},
    "Losses of the distance in an output space": {"": distance_losses()},
}
KERNELS = {
    **{name: kernels.as_kernel(name) for name in kernels.KERNEL_NAMES},
    "precomputed": kernels.Precomputed(X @ X.T),
    "on some columns": kernels.OnColumns(GAUSSIAN, [0, 2]),
    "sum and product": GAUSSIAN * kernels.Linear() + kernels.Constant(1.0),
    "of scikit-learn": kernels.SklearnKernel(RBF(2.0)),
    "list of kernels": [GAUSSIAN, kernels.Linear()],
    "function": kernels.CallableKernel(quadratic),
}
DISTANCES = {
    **{name: name for name in (*distance_losses(), "quantile")},
    "own": Cauchy(),
}


def fit(model, *labels, rows=X, **more):
    model.fit(rows, *labels, **more).predict(rows)


def losses_and_learners(row, column):
    kind, name = row.split(": ")
    model, labels, more = MODELS[kind]
    labels = POSSIBLE.get(name, labels)
    fit(model(name, learner=LEARNERS[column], **FEW), labels, **more)


def fits_in_two_parts(row, column):
    settings = {"random_state": 0, "early_stopping": False, "learner": CONTINUED[row]}
    if column == "`warm_start`":
        whole = BoostingRegressor(n_estimators=3, **settings).fit(X, Y)
        model = BoostingRegressor(n_estimators=2, warm_start=True, **settings).fit(X, Y)
        model.set_params(n_estimators=3).fit(X, Y)
        np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    elif column == "output kernels":
        learner = "ok3" if row == "trees" else settings.pop("learner")
        with_checkpoint(
            lambda: OutputKernelBoostingRegressor(**FEW | {"learner": learner}), np.c_[Y, X[:, 2]]
        )
    else:
        with_checkpoint(lambda: BoostingRegressor(n_estimators=3, **settings), Y)


def with_checkpoint(model, labels):
    """The same bits as a whole fit."""
    with TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "c")
        for callbacks in ([checkpoint, lambda event: event.stage == 2], [checkpoint]):
            resumed = model().fit(X, labels, callbacks=callbacks)
    np.testing.assert_array_equal(resumed.predict(X), model().fit(X, labels).predict(X))


def checkpoints_of_machines(row, column):
    kind = KernelBoostingRegressor if row == "numbers" else KernelBoostingClassifier
    settings = {**FEW, "kernel": KERNELS.get(column, GAUSSIAN), "regularization": 0.1}
    settings |= STAGES.get(column, {})
    if column == "`reweight=True`":
        settings |= {"reweight": True, "n_basis": 10}
    with_checkpoint(lambda: kind(**settings), Y if row == "numbers" else CLASSES)


def losses_and_kernel_stages(row, column):
    kind, name = row.split(": ")
    labels = POSSIBLE.get(name, Y) if kind == "regression" else CLASSES
    if column == "one sparse machine":
        more = {} if row == "regression: squared_error" else {"loss": name}
        one = SparseKernelRidge if kind == "regression" else SparseKernelClassifier
        return fit(one(n_basis=10, **more, **MACHINE), labels)
    boosted = KernelBoostingRegressor if kind == "regression" else KernelBoostingClassifier
    return fit(boosted(name, n_estimators=3, **STAGES[column], **MACHINE), labels)


def kernels_and_machines(row, column):
    kernel = KERNELS[row]
    rows = np.arange(N)[:, None].astype(float) if row == "precomputed" else X
    rows = np.abs(rows) if row == "tanimoto" else rows
    settings = MACHINE | {"kernel": kernel}
    if column == "one sparse machine":
        return fit(SparseKernelRidge(n_basis=10, **settings), Y, rows=rows)
    if column in STAGES:
        model = KernelBoostingRegressor(n_estimators=3, **STAGES[column], **settings)
        return fit(model, Y, rows=rows)
    machine = KernelBoostingRegressor(kernel=kernel, regularization=0.1)
    if column == "output kernels":
        return fit(OutputKernelBoostingRegressor(learner=machine, **FEW), Y, rows=rows)
    learner = machine if column == "`BoostingRegressor`" else [machine, "tree"]
    return fit(BoostingRegressor(learner=learner, **FEW), Y, rows=rows)


def spaces_and_learners(row, column):
    rng = np.random.default_rng(1)
    if row == "precomputed":
        labels = X @ X.T
    else:
        space = type(OUTPUT_NAMES[row]())
        labels = next(case for case in OUTPUTS if type(case.make()) is space).draw(rng, N)
    if column in ("forest", "single tree"):
        kinds = {"forest": OutputKernelForestRegressor, "single tree": OutputKernelTreeRegressor}
        more = {"n_estimators": 3} if column == "forest" else {}
        return fit(kinds[column](row, random_state=0, **more), labels)
    return fit(
        OutputKernelBoostingRegressor(row, learner=LEARNERS_OF_OUTPUTS[column], **FEW), labels
    )


def distances_and_learners(row, column):
    learner = LEARNERS_OF_OUTPUTS[column]
    model = OutputKernelBoostingRegressor("gaussian", loss=DISTANCES[row], learner=learner, **FEW)
    fit(model, np.c_[Y, X[:, 2]])


DISTRIBUTED = {case.name: case.name for case in DISTRIBUTIONS} | {
    "of SciPy": stats.gumbel_r,
    "own": Gumbel(),
}


def distributions(row, column):
    _, name = row.split(": ")
    loss, y = DISTRIBUTED.get(name, "normal"), POSSIBLE.get(name, Y)
    if name in STAGES:
        model = KernelBoostingRegressor(loss, n_estimators=3, **STAGES[name], **MACHINE)
    else:
        model = BoostingRegressor(loss, learner=LEARNERS.get(name, "tree"), **FEW)
    if column == "bounds":
        bounds = np.array([*zip(y, np.where(y > np.median(y), np.inf, y), strict=True)], "f8,f8")
        bounds.dtype.names = ("lower", "upper")
        found = model.fit(X, bounds).predict_distribution(X).log_score(bounds)
        assert np.isfinite(found).all()
        return
    found = model.fit(X, y).predict_distribution(X)
    if column == "file":
        scores = reloaded(model).predict_distribution(X).log_score(y)
        np.testing.assert_array_equal(scores, found.log_score(y))
    elif column == "report":
        assert "Levels of the targets" in model.report(X, y).html
    elif column == "ONNX":
        np.testing.assert_allclose(in_onnx(model).T, [*found.parameters.values()], rtol=1e-9)
    elif column == "`shap_values`":
        shap = model.shap_values(X)
        total = shap.values.sum(axis=1) + shap.base_values
        np.testing.assert_allclose(total, model.predict_raw(X), atol=1e-6)
    else:
        calibrated = model.calibrate(X + 1e-9, y).predict_distribution(X)
        assert np.isfinite(calibrated.crps(y)).all()


def in_onnx(model):
    """Parameters by ONNX Runtime."""
    onnxruntime = pytest.importorskip("onnxruntime")
    with TemporaryDirectory() as folder:
        to_onnx(model, Path(folder) / "model")
        session = onnxruntime.InferenceSession(Path(folder) / "model")
    return session.run(["parameters"], {session.get_inputs()[0].name: X})[0]


def uncertainty(row, column):
    model, labels, predict = UNCERTAIN[row]
    model = model()
    if column == "`return_std`":
        return model.fit(X, labels).calibrate(X + 1e-9, labels).predict(X, return_std=True)
    if column == "out-of-fold":
        model.set_params(cv_folds=3, early_stopping=True)
        return getattr(model.fit(X, labels), predict)(X)
    more = {"groups": np.arange(N) % 2} if column == "by group" else {}
    model.fit(X, labels).calibrate(X + 1e-9, labels, **more)
    return getattr(model, predict)(X, coverage=0.7, **more)


_KERNEL = {"kernel": GAUSSIAN}
HELD_OUT = {
    "`KernelBoostingRegressor`": (partial(KernelBoostingRegressor, **_KERNEL), Y),
    "`KernelBoostingClassifier`": (partial(KernelBoostingClassifier, **_KERNEL), CLASSES),
    "`SparseKernelRidge`": (partial(SparseKernelRidge, n_basis=10, **_KERNEL), Y),
    "`SparseKernelClassifier`": (partial(SparseKernelClassifier, n_basis=10, **_KERNEL), CLASSES),
    "`AveragedKernelRidge`": (
        partial(AveragedKernelRidge, kernel=GAUSSIAN, n_estimators=2, subset_size=20),
        Y,
    ),
    "`OutputKernelBoostingRegressor`": (partial(OutputKernelBoostingRegressor, **FEW), Y),
    "`OutputKernelForestRegressor`": (partial(OutputKernelForestRegressor, **FEW), Y),
}


def held_out_rows(row, column):
    kind, learner = row.split(": ") if ": " in row else (row, "trees")
    model, labels, more = MODELS.get(kind) or (*HELD_OUT[kind], {})
    if kind in MODELS:
        model = partial(model, learner=LEARNERS.get(learner, learner), early_stopping=True, **FEW)
    if column == "`time`":
        return model().fit(X, labels, **more, time=np.arange(N))
    more = {"groups": np.arange(N) % 7} | more
    given = {} if column == "`groups`" else {"validation": GroupKFold(3)}
    return model(**given).fit(X, labels, **more)


def _of_numbers(kind, *arguments, **parameters):
    return partial(kind, *arguments, **parameters), Y, "predict_interval"


def _of_classes(kind, *arguments, **parameters):
    return partial(kind, *arguments, **parameters), CLASSES, "predict_set"


_LINKS = np.triu(np.random.default_rng(3).uniform(size=(N, N)) < 0.2, 1)
_BASIS = {"n_basis": 10, **MACHINE}
UNCERTAIN = {
    "`BoostingRegressor`": _of_numbers(BoostingRegressor, **FEW),
    "quantile levels": _of_numbers(BoostingRegressor, "quantile", quantile=[0.1, 0.9], **FEW),
    "list of learners": _of_numbers(BoostingRegressor, learner=LEARNERS["list of these"], **FEW),
    "`KernelBoostingRegressor`": _of_numbers(KernelBoostingRegressor, n_estimators=3, **MACHINE),
    "`SparseKernelRidge`": _of_numbers(SparseKernelRidge, **_BASIS),
    "`BoostingClassifier`": _of_classes(BoostingClassifier, **FEW),
    "hinge loss": _of_classes(BoostingClassifier, "hinge", **FEW),
    "`KernelBoostingClassifier`": _of_classes(KernelBoostingClassifier, n_estimators=3, **MACHINE),
    "`SparseKernelClassifier`": _of_classes(SparseKernelClassifier, **_BASIS),
    "`OutputKernelBoostingRegressor`": (
        partial(OutputKernelBoostingRegressor, "gaussian", **FEW),
        np.c_[Y, X[:, 2]],
        "predict_set",
    ),
    "`OutputKernelForestRegressor`": (
        partial(OutputKernelForestRegressor, "gaussian", **FEW),
        np.c_[Y, X[:, 2]],
        "predict_set",
    ),
    "`OutputKernelTreeRegressor`": (
        partial(OutputKernelTreeRegressor, "gaussian", random_state=0),
        np.c_[Y, X[:, 2]],
        "predict_set",
    ),
    "`NetworkCompletion`": (NetworkCompletion, (_LINKS | _LINKS.T).astype(int), "predict_set"),
}

TABLES = {
    "Losses and learners": losses_and_learners,
    "Fits in two parts": fits_in_two_parts,
    "Checkpoints of kernel machines": checkpoints_of_machines,
    "Losses and kernel machines": losses_and_kernel_stages,
    "Kernels": kernels_and_machines,
    "Output spaces": spaces_and_learners,
    "Losses of the distance in an output space": distances_and_learners,
    "Distributions": distributions,
    "Uncertainty": uncertainty,
    "Held-out rows": held_out_rows,
}


def _table(title):
    """Rows, columns, cells by row and column, and the quotation of each number."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")]
    header, _, *body = [[cell.strip() for cell in line] for line in lines]
    rows = _with_all_names([_names(row[0]) for row in body], BY_NAME.get(title, {}))
    cells = {
        (name, column): cell
        for names, row in zip(rows, body, strict=True)
        for name in names
        for column, cell in zip(header[1:], row[1:], strict=True)
    }
    quotations = dict(re.findall(r"^(\d+)\. [^\n]*?\"(.+?)\"", section, flags=re.M))
    return [name for names in rows for name in names], header[1:], cells, quotations


def _names(cell):
    """Each name of a row, with the kind before them: ``kind: first; second``."""
    kind, colon, names = cell.rpartition(": ")
    return [kind + colon + name for name in names.split("; ")]


def _with_all_names(rows, by_name):
    """Replace "every name" by all names of its kind, and "every other name" by those left."""
    listed = {name for names in rows for name in names}

    def all_names(name):
        kind, colon, last = name.rpartition(": ")
        if last not in ("every name", "every other name"):
            return [name]
        return sorted({kind + colon + one for one in by_name[kind]} - listed)

    return [[one for name in names for one in all_names(name)] for names in rows]


CELLS = [
    pytest.param(title, row, column, cell, quotations, id=f"{title}-{row}-{column}")
    for title in (TABLES if PAGE.exists() else ())
    for _, _, cells, quotations in [_table(title)]
    for (row, column), cell in cells.items()
]


@pytest.mark.parametrize(("title", "row", "column", "cell", "quotations"), CELLS)
def test_cell(title, row, column, cell, quotations):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cell == "●":
            TABLES[title](row, column)
            return
        with pytest.raises((HilboostError, ValueError, TypeError)) as error:
            TABLES[title](row, column)
    assert quotations[cell] in str(error.value)


def test_every_part_has_a_row():
    found = {title: set(_table(title)[0]) for title in TABLES}
    losses = {f"regression: {name}" for name in regression_losses()} | {
        f"classes: {name}" for name in classification_losses()
    }
    rankings = {f"ranking: {name}" for name in ranking_losses()}
    times = {f"survival: {name}" for name in survival_losses()}
    assert found["Losses and learners"] == losses | rankings | times
    assert found["Fits in two parts"] == set(CONTINUED)
    assert found["Losses and kernel machines"] == losses
    assert found["Kernels"] == set(KERNELS)
    assert found["Output spaces"] == set(OUTPUT_NAMES)
    assert found["Losses of the distance in an output space"] == set(DISTANCES)
    with_distribution = {f"loss: {name}" for name in DISTRIBUTED}
    assert with_distribution == {row for row in found["Distributions"] if row.startswith("loss")}
    assert found["Uncertainty"] == set(UNCERTAIN)
