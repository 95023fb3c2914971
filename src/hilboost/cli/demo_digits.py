"""The digits of ``hilboost demo``, compared with scikit-learn at the same settings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from hilboost import BoostingClassifier
from hilboost.cli.demo_setup import COMMON, OURS, SEED, DemoSize, Floats, one_thread, timed
from hilboost.cli.progress import StageProgress

__all__ = ["DigitsRun", "run_digits"]

SHOWN_ROUNDS = (0, 1, 2, 10, 20, 30, 40, 50, 100)
TREES: dict[str, Any] = {"max_leaf_nodes": 15, "min_samples_leaf": 20}


@dataclass(frozen=True)
class DigitsScore:
    """Scores of one library on the test digits."""

    library: str
    accuracy: float
    log_loss: float
    seconds: float


@dataclass(frozen=True)
class DigitsRun:
    """Results for the tables and plots of the digits."""

    scores: tuple[DigitsScore, DigitsScore]
    n_train: int
    n_test: int
    train_loss: Floats
    held_out_loss: Floats
    rounds: tuple[int, ...]
    probabilities: Floats
    image: Floats
    true_class: int


def run_digits(size: DemoSize, progress: StageProgress) -> DigitsRun:
    """Classify the handwritten digits with both libraries.

    Parameters
    ----------
    size : DemoSize
        The number of rounds.
    progress : StageProgress
        The progress bar to advance.

    Returns
    -------
    DigitsRun
        Scores, learning curves, and the class probabilities of one test digit by round.
    """
    images, labels = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        images, labels, test_size=0.25, stratify=labels, random_state=SEED
    )
    rounds = size.digits_rounds
    common = {**COMMON, **TREES}
    after_stage = progress.callback("digits: hilboost")
    ours = BoostingClassifier(n_estimators=rounds, **common, **OURS)
    _, our_seconds = timed(lambda: ours.fit(X, y, callbacks=(after_stage,)))
    progress.describe("digits: scikit-learn")
    theirs = HistGradientBoostingClassifier(max_iter=rounds, **common)
    with one_thread():
        _, their_seconds = timed(lambda: theirs.fit(X, y))
        their_proba = theirs.predict_proba(X_test)
    progress.advance(rounds)

    priors = np.bincount(y) / len(y)
    stages = [np.tile(priors, (len(X_test), 1)), *ours.staged_predict_proba(X_test)]
    shown = tuple(number for number in SHOWN_ROUNDS if number < len(stages))
    row = _slowest_row(stages[min(10, len(stages) - 1)], stages[-1], y_test)
    scores = (
        _digits_score("hilboost", stages[-1], y_test, our_seconds),
        _digits_score("scikit-learn", their_proba, y_test, their_seconds),
    )
    return DigitsRun(
        scores=scores,
        n_train=len(X),
        n_test=len(X_test),
        train_loss=np.asarray(ours.history_.train),
        held_out_loss=np.array([log_loss(y_test, stage) for stage in stages]),
        rounds=shown,
        probabilities=np.stack([stages[number][row] for number in shown]),
        image=X_test[row].reshape(8, 8),
        true_class=int(y_test[row]),
    )


def _digits_score(
    library: str, proba: Floats, y_test: NDArray[np.int_], seconds: float
) -> DigitsScore:
    accuracy = accuracy_score(y_test, proba.argmax(axis=1))
    return DigitsScore(library, float(accuracy), float(log_loss(y_test, proba)), seconds)


def _slowest_row(early: Floats, final: Floats, y_test: NDArray[np.int_]) -> int:
    """Choose the digit with the least early probability among those classified correctly."""
    rows = np.arange(len(y_test))
    doubt = np.where(final.argmax(axis=1) == y_test, early[rows, y_test], np.inf)
    return int(doubt.argmin())
