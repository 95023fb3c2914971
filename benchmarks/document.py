"""Combine the results into ``docs/benchmarks.md``: ``python benchmarks/document.py``."""

from __future__ import annotations

import re

from _common import RESULTS, ROOT

INTRODUCTION = """# Benchmarks

This page contains the results of the scripts in `benchmarks/` (`pip install '.[bench]'`).
Libraries take turns on the same data in the same run, with the same number of threads. Compare
ratios within a table rather than times of different runs, because the speed of the machine varies
over the day.

## Notes on the measurements

* Each table comes from one run, except for "Libraries at their defaults": hilboost was run up to
  six hours after the other libraries, on a machine of the same kind. Seconds are those of the
  processor.
* "Time to a given loss on large tables" was repeated on another machine, an Intel Xeon with AVX-512
  and two cores (`benchmarks/results/large_tables_xeon.md`): with 1,000,000 rows, automatic shards
  take .20 of LightGBM's time for regression and two classes, all rows .52 and .53 (100 rounds: .48
  and .53), and LightGBM's bagging .75 and .68. With 10,000,000 rows (one repeat), automatic
  shards take .09 and .11, all rows .44 and .72, and bagging .60 and .65.
* "Libraries at their defaults": over all 27 tables, the score of hilboost is 1.011 times that of
  the best library, and 1.006 times that of the best boosting library, without xRFM. Most of it
  comes from breast_cancer (1.15, with 143 test rows; xRFM is best) and enb (1.12; ChimeraBoost).
  All tables take 53.6 s, trees alone 29.4 s, and CatBoost 172.2 s. hilboost takes more than three
  times CatBoost's time on enb only (1.4 and .12 s).
* Some runs shared the machine with other processes, so their times are too long; their errors are
  not affected. These are kin40k on splits 1 to 9, and the tables of structured outputs except those
  under "Speed".
* "Tree boosting at equal settings": the first repeats of hilboost contain the compilation of what
  only large tables and many classes need. Fits of one run differed by up to a third.
* Rankings at equal settings: hilboost and LightGBM were measured together, after XGBoost and
  CatBoost. At defaults, and for survival times, rows were added in several runs, and the last ones
  shared the machine with other processes.
* The scaling of a stage, the memory of trees and the cold start were measured with the present
  state on the Intel Xeon.
* The kernel tables cover some of the settings of the script, with one run per setting.
* If a target contains a pure product of centered columns, R² differs more between two seeds of
  one library than between libraries, because no split on a single such column gains anything. On
  300,000 rows of such a function, four seeds gave .834, .784, .767, .760 for scikit-learn; .780,
  .835, .762, .763 for hilboost; and .833, .793, .781, .761 for LightGBM. The function used below
  therefore has interactions of columns that also have main effects.
* Peak memory of a fresh process on reg-31, measured once: hilboost 641 MiB (107 MiB added by the
  fit), LightGBM 546 (106), scikit-learn 529 (88), XGBoost 548 (104), CatBoost 795 (332). These
  values and the R² of the four seeds were recorded manually, without result files.
* One tree for all classes (`multi_output="shared"`) is faster but, with the same number of
  leaves, less accurate than one tree per class, as the results on Letter show. The default is
  therefore `"separate"`.
"""
LEFT_OUT = r"^### (?:All settings|Loss at equal time)$.*?(?=^### )"
"""Sections of results that are too long for the page."""
PARTS = (
    *(
        "trees",
        "large_tables",
        "shard_losses",
        "cold_start",
        "quality",
        "equal_rounds",
        "frontier",
        "categories",
        "kernels",
        "devices",
        "multiple_kernels",
        "mixed_learners",
        "ranking",
        "survival",
        "memory",
        "tree_memory",
        "stream",
        "stream_30000000",
        "stream_limited",
        "dask_cluster",
        "dask_failures",
        "dask_simulation",
        "dask_kernels",
        "scaling",
        "shapley",
    ),
    "structured",
)


def main() -> None:
    """Join the Markdown of all results, headings one level down."""
    texts = [INTRODUCTION]
    for name in PARTS:
        path = RESULTS / f"{name}.md"
        if path.is_file():
            text = re.sub(r"^#", "##", path.read_text(), flags=re.MULTILINE)
            text = re.sub(LEFT_OUT, "", text, flags=re.MULTILINE | re.DOTALL)
            texts.append(re.sub(r"\]\((\w+\.png)\)", r"](../benchmarks/results/\1)", text))
    (ROOT / "docs" / "benchmarks.md").write_text("\n".join(texts))


if __name__ == "__main__":
    main()
