"""Whether the integer steps of gradients are fine enough when weights are fractional.

Log loss on 600,000 rows and ten columns, 30 trees, test loss on 400,000 other rows; class-balanced
weights, and weights from 1e-9 to 1.  The same fit is repeated with gradients and hessians rounded
to 1, 4 and 8 bits fewer.  If one bit fewer makes the same model, more bits would as well.  Far
fewer bits move near-ties between splits, and with them the loss, up or down: this is the noise
against which other differences are to be judged.

Run ``python benchmarks/fixed_point.py``.  The JSON is saved after every fit, and a later run goes
on from there; ``--seconds 150`` begins no fit after this time.
"""

from __future__ import annotations

import numpy as np

from _common import RESULTS, in_parts, markdown_table, standard_error
from hilboost import BoostingClassifier
from hilboost.engine import gradients as packing

ROWS, TEST_ROWS = 600_000, 400_000
SEEDS = range(3)
BITS = (0, 1, 4, 8)
KINDS = ("balanced", "wide")
PATH = RESULTS / "fixed_point.json"


def draw(n: int, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    logit = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] - 2
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-logit))).astype(int)
    if kind == "wide":
        return X, y, 10 ** rng.uniform(-9, 0, size=n)
    return X, y, np.where(y == 1, n / (2 * y.sum()), n / (2 * (n - y.sum())))


def test_loss(model: BoostingClassifier, kind: str, seed: int) -> float:
    X, y, weight = draw(TEST_ROWS, kind, 1000 + seed)
    of_label = model.predict_proba(X)[np.arange(len(y)), y]
    return -float(np.average(np.log(of_label), weights=weight))


def measure(weights: str, seed: int, bits: int) -> dict[str, float]:
    X, y, weight = draw(ROWS, weights, seed)
    factor = packing._factor
    packing._factor = lambda *args: factor(*args) / 2**bits
    try:
        model = BoostingClassifier(
            n_estimators=30, learning_rate=0.2, early_stopping=False, random_state=seed
        )
        model.fit(X, y, sample_weight=weight)
    finally:
        packing._factor = factor
    return {"log_loss": test_loss(model, weights, seed)}


def main() -> None:
    cases = [
        {"weights": kind, "seed": seed, "bits": bits}
        for kind in KINDS
        for seed in SEEDS
        for bits in BITS
    ]
    records = in_parts(PATH, cases, measure)
    if len(records) == len(cases):
        print(table(records))


def table(records: list[dict]) -> str:
    """One row for each kind of weights: the loss, and its changes with fewer bits."""
    found = {(r["weights"], r["bits"], r["seed"]): r["log_loss"] for r in records}
    rows = []
    for kind in KINDS:
        losses = np.array([[found[kind, bits, seed] for seed in SEEDS] for bits in BITS])
        changes = losses[1:] - losses[0]
        cells = [f"{change.mean():+.1e} ± {standard_error(change):.0e}" for change in changes]
        rows.append([kind, f"{losses[0].mean():.6f}", *cells])
    return markdown_table(
        ["weights", "log loss", *(f"{bits} bits fewer" for bits in BITS[1:])], rows
    )


if __name__ == "__main__":
    main()
