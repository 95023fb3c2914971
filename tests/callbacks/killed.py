"""Fits that are killed at random moments, each in a process of its own, until one gets through.

Run as a script: only a process without threads may fork.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    save,
)
from hilboost.callbacks import Checkpoint
from hilboost.kernels import Gaussian, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 5))
Y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * RNG.normal(size=240)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [-0.5, 0.5])]
DRAWS = {"subsample": 0.7, "max_features": 0.6, "max_features_per_tree": 0.8, "n_jobs": 1}
MACHINE = KernelBoostingRegressor(kernel=Gaussian(2.0), regularization=0.1, n_basis=12)
CASES = {
    "bootstrap": lambda: BoostingRegressor(
        n_estimators=20, bootstrap=True, early_stopping=False, random_state=1, **DRAWS
    ),
    "list of learners": lambda: BoostingRegressor(
        learner=["tree", MACHINE, "linear"], n_estimators=16, cv_folds=2, random_state=0, n_jobs=1
    ),
    "committee": lambda: BoostingClassifier(
        n_estimators=20, early_stopping=True, cv_folds=2, random_state=0, n_jobs=1
    ),
    "kernel machines": lambda: KernelBoostingClassifier(
        kernel=[Gaussian(2.0), Linear()], n_basis=12, n_estimators=20, random_state=0, n_jobs=1
    ),
    "output kernel": lambda: OutputKernelBoostingRegressor(
        "ranking", loss="huber", learner="extra_trees", n_estimators=16, random_state=0, n_jobs=1
    ),
}
_RANKS = {"a": [1, 2, 3], "b": [3, 1, 2], "c": [2, 3, 1]}


def labels(name):
    kind = type(CASES[name]())
    if kind is OutputKernelBoostingRegressor:
        return [_RANKS[label] for label in LABELS]
    return LABELS if kind in (BoostingClassifier, KernelBoostingClassifier) else Y


def child(name, folder, seconds, stage):
    """A fit that is killed after some seconds, or by itself at a stage."""
    pid = os.fork()
    if pid:
        if seconds is not None:
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1] == 0

    def suicide(event):
        if event.stage == stage:
            os.kill(os.getpid(), signal.SIGKILL)

    status = 1
    try:
        callbacks = [Checkpoint(folder / "checkpoint", every_stages=3), suicide]
        model = CASES[name]().fit(X, labels(name), callbacks=callbacks)
        if seconds is None:
            save(model, folder / "resumed")
        status = 0
    finally:
        os._exit(status)


def main(folder):
    rng = np.random.default_rng(1)
    for name in CASES:
        here = folder / name
        here.mkdir()
        CASES[name]().set_params(n_estimators=2).fit(X, labels(name))  # compiled now
        began = time.monotonic()
        whole = CASES[name]().fit(X, labels(name))
        duration = time.monotonic() - began
        save(whole, here / "whole")
        child(name, here, None, int(rng.integers(4, 10)))
        # At any moment, the writing of the file included.
        for part in rng.uniform(0.1, 1.5, size=2):
            child(name, here, part * duration, None)
        assert child(name, here, None, None), name


if __name__ == "__main__":
    main(Path(sys.argv[1]))
