"""Whether the integer steps of gradients are fine enough when weights are fractional.

Run ``python benchmarks/fixed_point.py``.  Log loss on 600,000 rows and ten columns, 30 trees, test
loss on 400,000 other rows; class-balanced weights, and weights from 1e-9 to 1.  The same fit is
repeated with gradients and hessians rounded to 1, 2, 4, and 8 bits fewer.  If one bit fewer makes
the same model, more bits would as well.  Far fewer bits move near-ties between splits, and with
them the loss, up or down: this is the noise against which other differences are to be judged.
"""

from __future__ import annotations

import numpy as np

from _common import RESULTS, environment, markdown_table, write_json
from hilboost import BoostingClassifier
from hilboost.learners.tree import packing

ROWS, TEST_ROWS = 600_000, 400_000
SEEDS = range(6)
BITS = (0, 1, 2, 4, 8)
KINDS = ("balanced", "wide")


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


def main() -> None:
    factor = packing._factor
    records = []
    for kind in KINDS:
        for seed in SEEDS:
            X, y, weight = draw(ROWS, kind, seed)
            for bits in BITS:
                packing._factor = lambda *args, bits=bits: factor(*args) / 2**bits
                model = BoostingClassifier(
                    n_estimators=30, learning_rate=0.2, early_stopping=False, random_state=seed
                )
                model.fit(X, y, sample_weight=weight)
                loss = test_loss(model, kind, seed)
                records.append({"weights": kind, "seed": seed, "bits": bits, "log_loss": loss})
                print(records[-1], flush=True)
    packing._factor = factor
    write_json(RESULTS / "fixed_point.json", {"environment": environment(1), "results": records})
    print(table(records))


def table(records: list[dict]) -> str:
    """One row for each kind of weights: the loss, and its changes with fewer bits."""
    rows = []
    for kind in KINDS:
        losses = np.array(
            [
                [r["log_loss"] for r in records if r["weights"] == kind and r["bits"] == bits]
                for bits in BITS
            ]
        )
        changes = losses[1:] - losses[0]
        errors = changes.std(axis=1, ddof=1) / len(SEEDS) ** 0.5
        cells = [f"{m:+.1e} ± {e:.0e}" for m, e in zip(changes.mean(axis=1), errors, strict=True)]
        rows.append([kind, f"{losses[0].mean():.6f}", *cells])
    return markdown_table(
        ["weights", "log loss", *(f"{bits} bits fewer" for bits in BITS[1:])], rows
    )


if __name__ == "__main__":
    main()
