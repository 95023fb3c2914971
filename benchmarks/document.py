"""Put the results together as ``docs/benchmarks.md``: ``python benchmarks/document.py``."""

from __future__ import annotations

import re

from _common import RESULTS, ROOT

INTRODUCTION = """# Benchmarks

The figures as they came out, of the scripts in `benchmarks/` (`pip install '.[bench]'`). Libraries
take turns on the same data in the same run with the same number of threads; compare ratios, not
seconds of different runs.

Every table is of one run; the tables are of several runs of one day, on a machine whose speed
drifts. In the quality tables the peers, and hilboost on letter and usps, are of an earlier run
with the same settings. Of the tables with categories, CatBoost on amazon and flights was measured
beside other processes, which makes its seconds longer. The kernel tables are one run a setting
and a part of the settings of the script; runs of kin40k on splits 1 to 9 were made beside other
processes, which makes their seconds longer and leaves their errors as they are. The same holds
for the tables of structured outputs, except those under "Speed".

How to read the speed tables: R² of a function with a pure product of centered columns differs more
between two seeds of one library than between libraries, because no split on one such column gains
anything by itself. On 300,000 rows of such a function four seeds gave: scikit-learn .834, .784,
.767, .760; hilboost .780, .835, .762, .763; LightGBM .833, .793, .781, .761. The function used here
has interactions whose columns also act by themselves.

Noted by hand from runs whose result files were not kept, as are the seeds above: peak memory in
a fresh process on reg-31, once: hilboost 641 MiB (107 added by the fit),
LightGBM 546 (106), scikit-learn 529 (88), XGBoost 548 (104), CatBoost 795 (332).

One tree for all classes (`multi_output="shared"`) is faster and less accurate than one a class at
equal leaves, as the Letter figures show; hence the default `"separate"`.
"""
PARTS = ("trees", "cold_start", "quality", "categories", "kernels", "memory", "structured")


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
