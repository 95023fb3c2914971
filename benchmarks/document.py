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
  two hours after the other libraries, on the same machine, beside other processes. Its seconds are
  those of the processor, as are those of the others on six of the tables.
* "Time to a given loss on large tables" was repeated on another machine, an Intel Xeon with AVX-512
  and two cores (`benchmarks/results/large_tables_xeon.md`): with 1,000,000 rows, automatic shards
  take .20 of LightGBM's time for regression and two classes, all rows .52 and .53 (100 rounds: .48
  and .53), and LightGBM's bagging .75 and .68. With 10,000,000 rows (one repeat), automatic
  shards take .09 and .11, all rows .44 and .72, and bagging .60 and .65.
* "Libraries at their defaults" was repeated with the present state on the Intel Xeon, without
  xRFM: `benchmarks/results/quality_xeon.md`. The mean rank of 1.44 of six boosting
  libraries is the same. All 27 tables take 53.3 s of the processor, trees alone 30.3 s, and
  CatBoost, earlier on that day, 172.2 s (on the first machine: 64.6, 73.4 and 194.6 s). hilboost
  takes more than three times CatBoost's time on enb only (1.4 and .12 s). With other random draws
  of columns, the mean rank was 1.41, and the score over that of the best library 1.011 instead of
  1.007: one split of breast_cancer, with 143 test rows, makes most of the difference.
* Some runs shared the machine with other processes, so their times are too long; their errors are
  not affected. These are kin40k on splits 1 to 9, and the tables of structured outputs except those
  under "Speed".
* "Tree boosting at equal settings" is a table of version 0.1.0. Version 0.2.0 was measured on the
  Intel Xeon (`benchmarks/results/trees_0_2_0.md`). Against LightGBM, it takes there .47 of the
  time for regression, .51 with 255 leaves, .54 for two classes, .27 on Letter, .31 on its first
  1,000 rows with 1,000 rounds, and .50 on 2,000 × 20; and .16 of XGBoost's time to predict
  100,000 rows. Earlier states gave .52 to .56, .43 to .47, and .62 to .71 for the first three. On
  the first machine, in earlier runs, it was .62 to .69, .47 to .63, .51 to .66, .41 to .45, and
  .60 to .64 on 2,000 × 20. An early state on another Intel Xeon is in
  `benchmarks/results/trees_xeon.md`. Fits of one run differed by up to a third.
* Rankings at equal settings: hilboost and LightGBM were measured together, after XGBoost and
  CatBoost. At defaults, and for survival times, rows were added in several runs, and the last ones
  shared the machine with other processes.
* The scaling and the profile of a stage, the memory of trees and the cold start were measured with
  the present state on the Intel Xeon.
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
PARTS = (
    *(
        "trees",
        "large_tables",
        "shard_losses",
        "cold_start",
        "quality",
        "first_release",
        "whole_tables",
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
        "engine_profile",
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
            texts.append(re.sub(r"\]\((\w+\.png)\)", r"](../benchmarks/results/\1)", text))
    (ROOT / "docs" / "benchmarks.md").write_text("\n".join(texts))


if __name__ == "__main__":
    main()
