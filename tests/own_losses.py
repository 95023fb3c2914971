"""A loss as a user would write it, for comparisons with the built-in one."""

from fractions import Fraction

import numpy as np
from scipy.special import expit, logit

from hilboost import Loss
from hilboost.backends.loss_gradients import logistic
from hilboost.core.gradients import Gradients


def mean(target):
    """The float nearest to the exact mean, (1,)."""
    weight = np.ones(len(target.y)) if target.weight is None else target.weight
    weight, y = ([Fraction(x) for x in values] for values in (weight, target.y[:, 0]))
    total = sum(w * value for w, value in zip(weight, y, strict=True))
    return np.array([float(total / sum(weight))])


class MyLogLoss(Loss):
    def initial_raw(self, target):
        return logit(mean(target))

    def value(self, target, raw):
        return self._evaluated(target, raw)[0]

    def gradients(self, target, raw):
        _, negative, hessian = self._evaluated(target, raw)
        return Gradients(negative[:, None], hessian[:, None])

    def _evaluated(self, target, raw):
        """Rounded as in the built-in loss."""
        found = np.empty((3, len(raw)))
        logistic(target.y[:, 0].copy(), raw[:, 0].copy(), *found)
        return found

    def inverse_link(self, raw):
        return np.hstack([expit(-raw), expit(raw)])
