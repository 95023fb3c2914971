"""How far kernel boosting ends above the least penalized loss, for every loss and kind of stage.

Run ``python benchmarks/kernel_objective.py``.  Tables of 100 rows and two columns, whose target
depends on them; a Gaussian kernel of length scale 1.  The optimum over all coefficients is
L-BFGS's; of losses with kinks, that of the dual problem.  Sparse stages have all rows as basis
vectors, blocks two thirds of them.  Log loss, whose steps use a bound on the hessian, gets 400
stages; other losses 100 blocks, or the default number of other stages.
"""

from __future__ import annotations

import sys

import numpy as np

from _common import ROOT, markdown_table, study

sys.path.insert(0, str(ROOT))

from tests.cases import LOSSES
from tests.reference.penalized_fits import STAGES, relative_distances

ROWS = 100
LAMBDAS = (0.01, 1.0)
INTRODUCTION = """# Penalized objective of kernel boosting

How far the objective is above its minimum over all coefficients, relative to the minimum: before \
the first stage ("start", with λ = 0.01) and after the last one.
"""


CASES = {case.id: case for case in LOSSES}


def measure(loss: str, lam: float, stages: str) -> dict[str, float]:
    distances = relative_distances(CASES[loss], stages, ROWS, lam)
    return {
        "start": float(distances[0]),
        "end": float(distances[-1]),
        "largest_rise": float(max(np.diff(distances).max(), 0.0)),
        "n_stages": len(distances) - 1,
        "n_stages_to_a_thousandth": int(np.argmax(distances < 1e-3)),
    }


def page(records: list[dict], _: str) -> str:
    """One row a loss, one column a kind of stage and λ."""
    columns = [(stages, lam) for stages in STAGES for lam in LAMBDAS]
    found = {(r["loss"], r["stages"], r["lam"]): r for r in records}
    rows = []
    for loss in dict.fromkeys(r["loss"] for r in records):
        if all((loss, *column) in found for column in columns):
            cells = [found[loss, *column]["end"] for column in columns]
            start = found[loss, "full", LAMBDAS[0]]["start"]
            rows.append([loss, f"{start:.2g}", *(f"{max(end, 0):.0e}" for end in cells)])
    header = ["loss", "start", *(f"{stages}, λ = {lam:g}" for stages, lam in columns)]
    return f"{INTRODUCTION}\n{markdown_table(header, rows)}"


def main() -> None:
    cases = [
        {"loss": loss, "lam": lam, "stages": stages}
        for loss in CASES
        for lam in LAMBDAS
        for stages in STAGES
    ]
    study("kernel_objective", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()
