"""Sparse stages against brute force: SY2006, eqs. (18) and (20)-(26)."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.reference.machines import Staged, penalized

from hilboost.core.errors import IncompatibleParts, InvalidParameter
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.kernels import Gaussian, Matern
from hilboost.learners.kernel_machine.basis import SELECTIONS
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.problem import StageProblem
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.learners.kernel_machine.stage_system import StageSystem, minimize_quotient
from hilboost.losses import BinomialLogLoss, MultinomialLogLoss, SquaredError

KERNEL = Matern(1.3, 2.5)
LAMBDA = 0.3
SETTING = KernelMachineConfig(kernel=KERNEL, regularization=LAMBDA, standardize=False)


def draw(n=50, d=2, r=1, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.column_stack([np.sin(2 * X[:, 0] + k) + rng.normal(0, 0.3, n) for k in range(r)])
    return X, Target(Y, rng.uniform(0.2, 3, n) if weighted else None)


def codes(n_classes, weighted=False, n=60):
    X, target = draw(n, weighted=weighted)
    order = np.argsort(np.argsort(target.y[:, 0]))
    return X, Target((order * n_classes // n).astype(float)[:, None], target.weight)


def learner(**parameters):
    return SparseLearner(**{"setting": SETTING, "n_basis": 5, **parameters})


def started(target_of=draw, loss=None, n_stages=2, **parameters):
    X, target = target_of
    loss = loss or SquaredError()
    r = loss.gradients(
        target, loss.initial_raw(target)[None] + np.zeros((len(X), 1))
    ).negative_gradient.shape[1]
    return Staged(learner(**parameters), X, target, loss, r=r).go(n_stages)


def last_rows(staged):
    return staged.fitted[-1][0].term.model.rows


def system(staged, rows, now):
    """``H`` of every output and ``g``, naively, before the last stage."""
    X, target = staged.X, staged.target
    weight = np.ones(len(X)) if target.weight is None else target.weight
    K, f = KERNEL.block(X, X[rows]), staged.raw
    gradients = staged.loss.gradients(target, f)
    g = K.T @ (weight[:, None] * gradients.negative_gradient) - LAMBDA * f[rows]
    hessian = np.ones_like(f) if gradients.hessian is None else gradients.hessian
    if now == "bound":
        hessian = np.full_like(f, gradients.structure.bound)
    K_DD = KERNEL.block(X[rows], X[rows])
    H = [K.T @ ((weight * h)[:, None] * K) + LAMBDA * K_DD for h in hessian.T]
    return H, g


@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form_is_the_best_of_brute_force(weighted):
    staged = started(draw(weighted=weighted), n_basis=4)
    X, target = staged.X, staged.target
    K = KERNEL.block(X, X)
    alpha = staged.data.component(KERNEL, 1).alpha.copy()
    np.testing.assert_allclose(K @ alpha, staged.raw, atol=1e-10)
    staged.go()
    model = staged.fitted[-1][0].term.model

    weight = np.ones(50) if target.weight is None else target.weight

    # Other coordinates for a, in which the valley is round.
    B = K[:, model.rows]
    T = np.linalg.inv(np.linalg.cholesky(B.T @ B + K[np.ix_(model.rows, model.rows)])).T

    def objective(z):
        c, a = z[0], T @ z[1:]
        moved = alpha.copy()
        moved[model.rows, 0] += c * a
        uphill = LAMBDA * K @ moved - K @ (weight[:, None] * (target.y - K @ moved))
        slope = uphill[model.rows, 0]
        value = penalized(staged.loss, target, K, moved, LAMBDA)
        return value, np.append(slope @ a, c * T.T @ slope)

    options = {"gtol": 1e-10, "maxiter": 5000}
    found = minimize(objective, np.ones(5), jac=True, options=options)
    chosen, _ = objective(np.append(1.0, np.linalg.solve(T, model.weights[:, 0])))
    assert chosen <= found.fun + 1e-9
    np.testing.assert_allclose(chosen, found.fun, rtol=1e-7)
    np.testing.assert_allclose(found.x[0] * T @ found.x[1:], model.weights[:, 0], atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 3])
def test_objective_falls_by_the_gain(weighted, r):
    staged = Staged(learner(), *draw(r=r, weighted=weighted), r=r)
    K = KERNEL.block(staged.X, staged.X)
    for _ in range(4):
        before = staged.data.component(KERNEL, r).alpha.copy()
        raw = staged.raw.copy()
        staged.go()
        rows = last_rows(staged)
        naive = Staged(staged.learner, staged.X, staged.target, r=r)
        naive.raw = raw
        (H, *_), g = system(naive, rows, "exact")
        gain = 0.5 * np.sum(g * np.linalg.solve(H, g))
        assert gain > 0
        after = staged.data.component(KERNEL, r).alpha
        values = [
            penalized(staged.loss, staged.target, K, alpha, LAMBDA) for alpha in (before, after)
        ]
        np.testing.assert_allclose(values[0] - values[1], gain, rtol=1e-8)
        np.testing.assert_allclose(
            staged.fitted[-1][0].term.model.weights, np.linalg.solve(H, g), rtol=1e-6, atol=1e-9
        )


def test_gain_of_one_basis_vector_is_the_criterion_of_forward_selection():
    staged = started(draw())
    X, y, f = staged.X, staged.target.y, staged.raw
    now = staged.loss.gradients(staged.target, f)
    K = KERNEL.block(X, X)
    for i in range(0, len(X), 7):
        problem = StageProblem(staged.data.component(KERNEL, 1), LAMBDA, now, None)
        made = StageSystem.of(staged.data.workspace, problem, np.array([i]))
        k = K[:, i]
        score = 0.5 * float(k @ (y - f)[:, 0] - LAMBDA * f[i, 0]) ** 2 / (LAMBDA * K[i, i] + k @ k)
        np.testing.assert_allclose(made.gain(), score, rtol=1e-9, atol=1e-20)


@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_stages_are_newton_steps(weighted):
    staged = started(codes(2, weighted), BinomialLogLoss())
    before = Staged(staged.learner, staged.X, staged.target, staged.loss)
    before.raw = staged.raw.copy()
    staged.go()
    (H,), g = system(before, last_rows(staged), "exact")
    model = staged.fitted[-1][0].term.model
    np.testing.assert_allclose(model.weights, np.linalg.solve(H, g), rtol=1e-6, atol=1e-9)
    K = KERNEL.block(staged.X, staged.X[model.rows])
    np.testing.assert_allclose(staged.fitted[-1][0].outputs, K @ model.weights, atol=1e-10)


def test_all_classes_share_the_bound():
    staged = started(codes(3, True), MultinomialLogLoss(3))
    before = Staged(staged.learner, staged.X, staged.target, staged.loss, r=3)
    before.raw = staged.raw.copy()
    staged.go()
    (H, *_), g = system(before, last_rows(staged), "bound")
    model = staged.fitted[-1][0].term.model
    np.testing.assert_allclose(model.weights, np.linalg.solve(H, g), rtol=1e-6, atol=1e-9)


def test_without_a_bound_every_output_has_its_own_system():
    staged = Staged(learner(), *draw(r=2), r=2)
    rng = np.random.default_rng(1)
    hessian = rng.uniform(0.1, 4, size=(50, 2))
    staged.loss = type(
        "Weighted",
        (SquaredError,),
        {"gradients": lambda self, target, raw: Gradients(hessian * (target.y - raw), hessian)},
    )()
    staged.go()
    before = Staged(staged.learner, staged.X, staged.target, staged.loss, r=2)
    H, g = system(before, last_rows(staged), "exact")
    expected = np.column_stack([np.linalg.solve(H[k], g[:, k]) for k in range(2)])
    np.testing.assert_allclose(staged.fitted[-1][0].term.model.weights, expected, rtol=1e-6)


def test_a_penalty_on_the_stage_alone():
    staged = started(draw(weighted=True), penalty="stage")
    X, target, raw = staged.X, staged.target, staged.raw.copy()
    staged.go()
    rows = last_rows(staged)
    K = KERNEL.block(X, X[rows])
    H = K.T @ (target.weight[:, None] * K) + LAMBDA * KERNEL.block(X[rows], X[rows])
    expected = np.linalg.solve(H, K.T @ (target.weight[:, None] * (target.y - raw)))
    np.testing.assert_allclose(
        staged.fitted[-1][0].term.model.weights, expected, rtol=1e-6, atol=1e-9
    )


def test_penalties_agree_in_the_first_stage():
    one, other = (started(draw(), n_stages=1, penalty=p) for p in ("stage", "ensemble"))
    np.testing.assert_array_equal(one.raw, other.raw)


def random_system(n=80, D=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    K = KERNEL.block(X, X[:D])
    y, f = np.sin(2 * X[:, 0]) + rng.normal(0, 0.3, n), 0.3 * np.sin(X[:, 0])
    return K, KERNEL.block(X[:D], X[:D]), y, f, rng


@pytest.mark.parametrize("seed", range(5))
def test_conjugate_gradients_minimize_the_quotient(seed):
    K, K_DD, y, f, _ = random_system(seed=seed)
    H = K.T @ K + LAMBDA * K_DD
    g = K.T @ (y - f) - LAMBDA * f[: len(K_DD)]
    best = 0.5 * g @ np.linalg.solve(H, g)
    subset = slice(0, 30)
    start = np.linalg.solve(K[subset].T @ K[subset] + LAMBDA * K_DD, K[subset].T @ (y - f)[subset])

    def decrease(a):
        return g @ a - 0.5 * a @ H @ a

    ratio = 0.5 * (g @ start) ** 2 / (start @ H @ start)
    gained = [decrease(minimize_quotient(H, g, start, k)) for k in (1, 5, 50)]
    assert ratio <= gained[0] + 1e-12
    assert (np.diff(gained) >= -1e-12).all()
    assert 0.9 * best < gained[-1] <= best * (1 + 1e-9)
    np.testing.assert_allclose(
        minimize_quotient(H, g, np.linalg.solve(H, g), 50), np.linalg.solve(H, g), rtol=1e-6
    )
    long, short = (minimize_quotient(H, g, factor * start, 0) for factor in (7, 1))
    np.testing.assert_allclose(long, short, rtol=1e-9)
    assert decrease(minimize_quotient(H, g, np.zeros_like(g), 50)) > 0.5 * best


def test_the_gradient_is_that_of_the_ratio_on_all_rows(monkeypatch):
    """SY2006, (22)-(26), with ``F``, ``q`` and the residual of all rows, against what is used."""
    K, K_DD, y, f, rng = random_system()
    a = rng.normal(size=len(K_DD))
    H = K.T @ K + LAMBDA * K_DD
    g = K.T @ (y - f) - LAMBDA * f[: len(K_DD)]
    asked = {}

    def remember(objective, start, **_):
        asked["value"], asked["gradient"] = objective(start)
        return type("Result", (), {"x": start})

    monkeypatch.setattr("hilboost.learners.kernel_machine.stage_system.minimize", remember)
    minimize_quotient(H, g, a, 1)

    def reduced(a):  # (21)
        own = K @ a
        above = own @ (y - f) - LAMBDA * a @ f[: len(a)]
        return -0.5 * above**2 / (LAMBDA * a @ K_DD @ a + own @ own)

    size = abs(reduced(a))
    assert asked["value"] == pytest.approx(reduced(a) / size)
    steps = 1e-5 * np.eye(len(a))
    slope = [(reduced(a + s) - reduced(a - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(asked["gradient"] * size, slope, rtol=1e-5, atol=1e-7 * size)


@pytest.mark.parametrize("weighted", [False, True])
def test_conjugate_gradient_stages(weighted):
    data = draw(80, weighted=weighted)
    closed = started(data, n_basis=10, subset_size=40)
    climbed = started(data, n_basis=10, subset_size=40, solver="conjugate_gradient")
    K = KERNEL.block(data[0], data[0])
    null = penalized(closed.loss, closed.target, K, np.zeros((80, 1)), LAMBDA)
    fallen = [
        null - penalized(s.loss, s.target, K, s.data.component(KERNEL, 1).alpha, LAMBDA)
        for s in (closed, climbed)
    ]
    assert 0.9 * fallen[0] < fallen[1] < fallen[0] * 1.02


@pytest.mark.parametrize("weighted", [False, True])
def test_conjugate_gradients_start_at_the_fit_to_the_subset(weighted, monkeypatch):
    starts = []
    monkeypatch.setattr(
        "hilboost.learners.kernel_machine.stage_system.minimize_quotient",
        lambda H, g, start, iterations: starts.append(start) or start,
    )
    subset_size = 20
    staged = started(
        draw(weighted=weighted), n_stages=1, solver="conjugate_gradient", subset_size=subset_size
    )
    rng = np.random.default_rng((0, 0))
    subset = np.sort(rng.choice(50, subset_size, replace=False))
    rows = last_rows(staged)
    assert np.isin(rows, subset).all()
    X, target = staged.X, staged.target
    K = KERNEL.block(X[subset], X[rows])
    w = np.ones(20) if target.weight is None else target.weight[subset]
    H = K.T @ (w[:, None] * K) + LAMBDA * KERNEL.block(X[rows], X[rows])
    expected = np.linalg.solve(H, K.T @ (w * target.y[subset, 0]))
    np.testing.assert_allclose(starts[0], expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_length_scales_compete_by_their_gain(weighted):
    factors = (0.25, 1.0, 4.0)
    X, target = draw(60, weighted=weighted)
    for frequency in (0.3, 1.5, 9.0):
        y = np.sin(frequency * X[:, :1])
        staged = Staged(
            learner(length_scale_factors=factors, n_basis=60), X, Target(y, target.weight)
        )
        gains = []
        w = np.ones(60) if target.weight is None else target.weight
        for factor in factors:
            K = KERNEL.stretched(factor).block(X, X)
            # All rows are basis vectors: the gain is that of kernel ridge regression.
            gains.append(
                0.5 * np.sum(w[:, None] * y * (K @ np.linalg.solve(K + np.diag(LAMBDA / w), y)))
            )
        staged.go()
        chosen = staged.fitted[0][0].term.model.kernel
        expected = KERNEL.stretched(factors[int(np.argmax(gains))])
        np.testing.assert_allclose(chosen.log_parameters, expected.log_parameters)


def test_kernels_of_several_scales_are_penalised_apart():
    staged = started(draw(), n_stages=6, length_scale_factors=(0.3, 1.0, 3.0))
    assert len(staged.data.record.components) > 1
    total = sum(component.function for component in staged.data.record.components)
    np.testing.assert_allclose(total, staged.raw, atol=1e-10)


def test_rows_outside_the_sample_are_not_used():
    X, target = draw(weighted=True)
    inside = np.arange(0, 50, 2)
    staged = Staged(learner(), X, target, rows=inside).go(3)
    other_y, other_weight = target.y.copy(), target.weight.copy()
    other_y[1::2] += 100
    other_weight[1::2] *= 7
    other = Staged(learner(), X, Target(other_y, other_weight), rows=inside).go(3)
    np.testing.assert_array_equal(staged.raw, other.raw)
    alone = Staged(learner(), X[inside], target.rows(inside)).go(3)
    np.testing.assert_allclose(alone.raw, staged.raw[inside], atol=1e-8)
    for fitted in staged.fitted:
        assert np.isin(fitted[0].term.model.rows, inside).all()


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("loss", [BinomialLogLoss(), SquaredError()], ids=["log", "squared"])
def test_weights_are_repetitions_in_every_selection(selection, loss):
    """With all rows as basis vectors; the rest of a selection is random."""
    X, target = codes(2)
    weight = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    repeated = np.repeat(np.arange(60), weight.astype(int))
    parameters = {"selection": selection, "n_basis": 200, "n_candidates": None}
    one = Staged(learner(**parameters), X, Target(target.y, weight), loss).go(2)
    other = Staged(learner(**parameters), X[repeated], target.rows(repeated), loss).go(2)
    np.testing.assert_allclose(one.raw[repeated], other.raw, atol=1e-5)


def test_the_greedy_choice_sees_weights_as_repetitions():
    X, target = codes(2)
    weight = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    repeated = np.repeat(np.arange(60), weight.astype(int))
    parameters = {"selection": "forward", "n_basis": 6, "n_candidates": None}
    loss = BinomialLogLoss()
    one = Staged(learner(**parameters), X, Target(target.y, weight), loss).go(2)
    other = Staged(learner(**parameters), X[repeated], target.rows(repeated), loss).go(2)
    for mine, theirs in zip(one.fitted, other.fitted, strict=True):
        np.testing.assert_array_equal(
            np.sort(mine[0].term.model.rows), np.sort(repeated[theirs[0].term.model.rows])
        )
    np.testing.assert_allclose(one.raw[repeated], other.raw, atol=1e-8)


def test_more_basis_vectors_than_rows():
    staged = started(draw(20), n_basis=100, n_stages=3)
    K = KERNEL.block(staged.X, staged.X)
    expected = K @ np.linalg.solve(K + LAMBDA * np.eye(20), staged.target.y)
    np.testing.assert_allclose(staged.raw, expected, atol=1e-8)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_outputs_are_predictions(precision):
    setting = KernelMachineConfig(kernel=Gaussian(1.0), regularization=LAMBDA, precision=precision)
    staged = started(draw(weighted=True), setting=setting)
    limit = 1e-5 if precision == "float32" else 1e-12
    np.testing.assert_allclose(staged.predicted(staged.X), staged.raw, atol=limit)
    assert staged.fitted[0][0].term.model.basis.dtype == precision


def test_too_little_memory_is_said():
    setting = KernelMachineConfig(kernel=KERNEL, regularization=1.0, memory_budget=2**20)
    staged = Staged(SparseLearner(setting, n_basis=7), *draw())
    with pytest.raises(InvalidParameter, match=r"is 1 MiB, .* 7 basis vectors requires \d+ MiB"):
        staged.go()


def test_new_weights_are_for_squared_error_on_all_rows():
    X, target = codes(2)
    with pytest.raises(IncompatibleParts, match="squared error"):
        Staged(learner(reweight=True), X, target, BinomialLogLoss()).go()
    with pytest.raises(IncompatibleParts, match="subsample"):
        Staged(learner(reweight=True), X, target, rows=np.arange(30)).go()
