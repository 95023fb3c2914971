"""Lecture slides on gradient boosting after Cheng Li: the table of losses, and 26 letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, log_loss

from hilboost import BoostingClassifier
from hilboost.core.target import Target
from hilboost.losses import AbsoluteError, Huber, MultinomialLogLoss, SquaredError
from kernel_data import SETS

Y, F = (0.5, 1.2, 2.0, 5.0), (0.6, 1.4, 1.5, 1.7)
LOSSES = {"square loss": SquaredError(), "absolute loss": AbsoluteError(), "Huber loss": Huber(0.5)}
ROUNDS = 100
SHOWN = (0, 1, 2, 10, 20, 30, 40, 50, 100)
EXAMPLE, G = 4, 6
"""The fifth row of the data, and its letter; A is 0."""


def losses(runs: int, recorded: Path | None) -> dict[str, Any]:
    """The losses of four predictions."""
    y, raw = np.array(Y)[:, None], np.array(F)[:, None]
    return {
        "values": {
            f"{name} at y = {true:g}, F = {predicted:g}": [float(value)]
            for name, loss in LOSSES.items()
            for true, predicted, value in zip(Y, F, loss.value(Target(y), raw), strict=True)
        }
    }


def letter(runs: int, recorded: Path | None) -> dict[str, Any]:
    """100 rounds for 26 letters, and what becomes of the example's probabilities."""
    train, test = SETS["letter"].load(0)
    model = BoostingClassifier(
        n_estimators=ROUNDS,
        learning_rate=0.1,
        max_leaf_nodes=31,
        min_samples_leaf=20,
        l2_regularization=0.0,
        subsample=1.0,
        max_features=1.0,
        early_stopping=False,
        random_state=0,
    ).fit(train.X, train.y)
    row = train.X[EXAMPLE : EXAMPLE + 1]
    start = model.loss_.inverse_link(model.model_.initial_raw[None])
    path = np.concatenate([start, *model.staged_predict_proba(row)])
    kl = -np.log(path[:, G])
    proba = model.predict_proba(test.X)
    accuracy = accuracy_score(test.y, model.classes_[proba.argmax(axis=1)])
    quality = f"accuracy {accuracy:.4f}, log-loss {log_loss(test.y, proba):.4f}"
    return {
        "values": {
            "probability of G at round 0": [float(path[0, G])],
            "probability of G at round 100": [float(path[-1, G])],
            "the KL divergence decreases between the rounds shown": [
                float((np.diff(kl[list(SHOWN)]) < 0).all())
            ],
            "the gradient of class c is Y_c − P_c (largest difference)": [gradient_difference()],
        },
        "curves": {
            f"P({chr(65 + c)})": [[m, float(p)] for m, p in enumerate(path[:, c])]
            for c in (G, *(c for c in np.argsort(-path[1])[:4] if c != G))
        },
        "axes": ["rounds", "probability of the example"],
        "notes": [
            f"On the 4,000 test rows: {quality}. The slides do not report these metrics.",
            "In the slides, round 0 assigns the same probability to all letters, 1/26. In "
            "hilboost it is the frequency of the letter in the training rows, which is the best "
            "constant.",
        ],
    }


def gradient_difference() -> float:
    rng = np.random.default_rng(0)
    codes, raw = rng.integers(26, size=200), rng.normal(size=(200, 26))
    loss = MultinomialLogLoss(26)
    scores = np.exp(raw)
    expected = np.eye(26)[codes] - scores / scores.sum(axis=1, keepdims=True)
    negative = loss.gradients(Target(codes[:, None].astype(float)), raw).negative_gradient
    return float(np.abs(negative - expected).max())
