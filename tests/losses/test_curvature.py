"""What losses with kinks or linear tails tell kernel machines of their curvature."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import LOSSES, ids

KINKED = [case for case in LOSSES if case.name in ("absolute_error", "hinge", "huber", "quantile")]
OTHERS = [case for case in LOSSES if case not in KINKED]


@pytest.mark.parametrize("case", KINKED, ids=ids(KINKED))
@given(seed=st.integers(0, 2**31), size=st.sampled_from([1e-6, 0.01, 1.0, 100.0]))
def test_the_parabola_lies_above_the_loss(case, seed, size):
    rng = np.random.default_rng(seed)
    loss, target = case.make(), case.target(rng, 20)
    raw = np.broadcast_to(loss.initial_raw(target), (20, case.n_outputs)) + rng.normal(size=(20, 1))
    curved = loss.with_curvature(target, raw)
    now, step = curved.gradients(target, raw), size * rng.normal(size=raw.shape)
    parabola = (-now.negative_gradient * step + 0.5 * now.hessian * step**2).sum(axis=1)
    rise = loss.value(target, raw + step) - loss.value(target, raw)
    # The smoothed kink lies below the loss by half its width at most; Huber's is the loss itself.
    slack = 0.0 if case.name == "huber" else curved.height * curved.width * case.n_outputs
    assert (rise <= parabola + slack + 1e-9 * (1 + np.abs(parabola))).all()
    assert (now.hessian > 0).all()


@pytest.mark.parametrize("case", OTHERS, ids=ids(OTHERS))
def test_other_losses_are_what_kernel_machines_see(case):
    loss, target = case.make(), case.target(np.random.default_rng(0), 20)
    raw = np.tile(loss.initial_raw(target), (20, 1))
    assert loss.with_curvature(target, raw) is loss
