"""Tables of ``structured.py`` from its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from _common import Record, by, cell, failures_section, markdown_table, median, sources
from structured_images import IMAGE_SETS
from structured_tables import LABEL_SETS, LABEL_WAYS, RANKING_SETS, REGRESSORS

Table = dict[str, list[Record]]

# G2007, Table 1: means and standard deviations as printed
PUBLISHED_FRIEDMAN = {
    "OK3 single": ("11.203 ± 0.619", "11.203 ± 0.619"),
    "OK3 + bagging": ("5.089 ± 0.394", "5.154 ± 0.378"),
    "OK3 + ET": ("5.990 ± 0.561", "6.162 ± 0.582"),
    "OK3 + OKBoost": ("3.589 ± 0.277", "3.589 ± 0.271"),
    "OK3-et + OKBoost": ("3.349 ± 0.355", "3.365 ± 0.349"),
}
PUBLISHED_IMAGE = {
    "OK3 single": ("1.0434 ± 0.0152", "1.0399 ± 0.0150"),
    "OK3 + bagging": ("0.5442 ± 0.0019", "0.8643 ± 0.0096"),
    "OK3 + ET": ("0.5170 ± 0.0024", "0.8169 ± 0.0109"),
    "OK3 + OKBoost": ("0.5241 ± 0.0021", "0.8318 ± 0.0067"),
    "OK3-et + OKBoost": ("0.5093 ± 0.0033", "0.8071 ± 0.0114"),
}
PUBLISHED_BIBTEX = {"IOKR (published)": 0.449, "SISOKR (published)": 0.441}
TAU_TO_REACH = {
    "iris": 0.991,
    "glass": 0.927,
    "wine": 0.951,
    "vehicle": 0.894,
    "authorship": 0.945,
    "vowel": 0.923,
}


def of_group(records: Iterable[Record], group: str) -> list[Record]:
    return [r for r in records if r["group"] == group and "failure" not in r]


def mean(runs: Sequence[Record], score: str) -> float | None:
    found = [run[score] for run in runs if score in run]
    return float(np.mean(found)) if found else None


def mean_and_sd(runs: Sequence[Record], score: str, digits: int = 4) -> str:
    found = [run[score] for run in runs if score in run]
    if not found:
        return cell(None)
    if len(found) == 1:
        return f"{found[0]:.{digits}f}"
    return f"{np.mean(found):.{digits}f} ± {np.std(found, ddof=1):.{digits}f}"


def seconds(runs: Sequence[Record], score: str = "fit_s") -> str:
    found = median(run[score] for run in runs if score in run)
    return cell(None) if found is None else f"{found:.2g}" if found < 10 else f"{found:.0f}"


def splits_chosen(runs: Sequence[Record]) -> str:
    found = sorted(run["max_splits"] for run in runs if "max_splits" in run)
    if not found:
        return cell(None)
    return f"{found[0]}" if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def friedman_section(records: list[Record]) -> str:
    rows = []
    for method, runs in by(records, "method").items():
        phi, y = PUBLISHED_FRIEDMAN.get(method.partition(", K")[0], (None, None))
        ours = [mean_and_sd(runs, score, 3) for score in ("err_phi", "err_y")]
        between = np.std(np.mean([run["err_phi_samples"] for run in runs], axis=0), ddof=1)
        row = [method, ours[0], f"{between:.2f}", phi, ours[1], y]
        rows.append([*row, splits_chosen(runs), seconds(runs)])
    header = ["method", "Err_φ", "± test samples", "G2007", "Err_Y", "G2007", "J", "fit s"]
    runs = max(len(runs) for runs in by(records, "method").values())
    samples = len(records[0]["err_phi_samples"])
    return (
        "## G2007, Table 1: Friedman1\n\n"
        f"{runs} training sets of 300 rows, {samples} test samples of 1,000 rows, noise of "
        "variance 1; mean over all, and standard deviation over the training sets. The column *± "
        "test samples* is the standard deviation, between test samples, of the mean over the "
        "training sets: the paper has one test sample. Single trees and forests are fully grown, "
        "and forests have 100 trees. OKBoost uses ν = .01, M = 500, and J chosen by inner 5-fold "
        "cross-validation; fit times exclude this choice. Err_Y decodes to the nearest training "
        "output. Random splits examine K of the ten columns; the paper says √10, which is between "
        "3, the default of hilboost, and 4. The defaults are ν = .02 and J = 20.\n\n"
        f"{markdown_table(header, rows)}"
    )


def usps_section(records: list[Record]) -> str:
    parts = [
        "## G2007, Table 1: image completion\n\n"
        "Lower half from upper half of 1,000 digits; Gaussian output kernel with σ = 7.0711; 5 "
        "folds with 200 training images and 800 test images each; mean and standard deviation "
        "over the folds. The paper does not specify its 1,000 images. The first 1,000 images of "
        "the test file give similar errors; digits drawn from the training file are easier. Err_Y "
        "decodes to the nearest training output, *any image* to the continuous pre-image. "
        "Sketched trees choose their splits on 32 random directions. KDE is kernel ridge "
        "regression in the output space, either hilboost's with a Gaussian kernel whose length "
        "scale is the mean distance, or scikit-learn's with a grid search. The kernel machine is "
        "hilboost's at its defaults. Rows with & are the mean of two models."
    ]
    for name, found in by(records, "set").items():
        rows = []
        for method, runs in by(found, "method").items():
            phi, y = PUBLISHED_IMAGE.get(method, (None, None))
            ours = [mean_and_sd(runs, s) for s in ("err_phi", "err_y", "err_y_continuous")]
            rows.append([method, ours[0], phi, ours[1], y, ours[2], splits_chosen(runs)])
            rows[-1].append(seconds(runs))
        header = ["method", "Err_φ", "G2007", "Err_Y", "G2007", "any image", "J", "fit s"]
        parts.append(f"### USPS, {IMAGE_SETS[name]}\n\n{markdown_table(header, rows)}")
    return "\n\n".join(parts)


def figure_section(records: list[Record]) -> str:
    rows = []
    for record in records:
        curve = np.array(record["curve"])
        best = curve[curve[:, 2].argmin()]
        rows.append([record["method"], int(best[0]), *(f"{x:.4f}" for x in (best[2], best[4]))])
        rows[-1] += [f"{curve[-1, 2]:.4f}", f"{curve[-1, 4]:.4f}"]
    header = ["", "best M", "Err_φ", "Err_Y", "Err_φ at the end", "Err_Y at the end"]
    return (
        "## G2007, Figure 1: errors against the number of stages\n\n"
        "OK3 + OKBoost with exhaustive split search, on one fold of the table above.\n\n"
        "[The curves](../../reproductions/g2007/results/g2007-figure1.md) are on the page of the "
        "reproduction.\n\n"
        "Test errors, with M chosen by the Err_φ on the test set:\n\n"
        f"{markdown_table(header, rows)}"
    )


def full_section(records: list[Record]) -> str:
    rows = []
    for method, runs in by(records, "method").items():
        scores = [mean(runs, score) for score in ("err_phi", "err_y", "err_y_continuous")]
        shown = [cell(None) if score is None else f"{score:.4f}" for score in scores]
        rows.append([method, *shown, runs[0].get("rank"), seconds(runs)])
        rows[-1] += [seconds(runs, "predict_s"), seconds(runs, "decode_s")]
    header = ["method", "Err_φ", "Err_Y", "any image", "dimensions", "fit s", "predict s"]
    header.append("pre-images s")
    return (
        "## Image completion, all of USPS\n\n"
        "Lower half from upper half; 7,291 training digits and 2,007 test digits. The output "
        "kernel is that of the table above, factored with a tolerance of 5 % of its trace. "
        "scikit-learn's regressors, and hilboost with linear output, predict pixels. For these, "
        "*any image* evaluates the predicted image with the same kernel, and Err_Y the training "
        "image nearest to it. J is 20 unless stated otherwise. The forest has at least 5 rows per "
        "leaf.\n\n"
        f"{markdown_table(header, rows)}"
    )


def faces_section(records: list[Record]) -> str:
    rows = [
        [method, mean_and_sd(runs, "rmse"), mean_and_sd(runs, "r2", 3), seconds(runs)]
        for method, runs in by(records, "method").items()
    ]
    rows.sort(key=lambda row: row[1])
    groups = len(by(records, "split"))
    return (
        "## Faces\n\n"
        "Lower half from upper half of the Olivetti faces (64 x 64 pixels in [0, 1]); 35 people "
        f"for training and 5 others for testing, in {groups} such splits; mean and standard "
        "deviation over the splits.\n\n"
        f"{markdown_table(['method', 'RMSE', 'R²', 'fit s'], rows)}"
    )


def labels_section(records: list[Record]) -> str:
    parts = [
        "## Label sets\n\n"
        "Published splits. Samples-F1 is the mean over test rows of the F1 score, which is 1 if "
        "both sets are empty. Each row is one model with all decoding methods: the nearest "
        "training set, the training set at the smallest angle, all labels with a score of at "
        "least 1/2, the set with the largest expected F1, and the average number of labels. The "
        "minimum leaf size of ExtraTreesRegressor was tuned, and its scores are decoded by the "
        "same methods; `threshold` is its standard prediction. *Cosine output* divides label sets "
        "by their norms; it decodes to training sets. Sparse binary inputs are not standardized "
        "if the kernel is meant for such inputs."
    ]
    for name in LABEL_SETS:
        found = by((r for r in records if r["set"] == name), "method")
        if not found:
            continue
        rows: list[list[Any]] = []
        for method, runs in found.items():
            scores = [mean(runs, f"f1_{way}") for way in LABEL_WAYS]
            rows.append([method, *_bold_largest(scores), seconds(runs), seconds(runs, "predict_s")])
        if name == "bibtex":
            dashes = [None] * (len(LABEL_WAYS) - 1)
            rows += [[m, f"{f1:.3f}", *dashes, None, None] for m, f1 in PUBLISHED_BIBTEX.items()]
        header = ["method", *LABEL_WAYS, "fit s", "predict s"]
        parts.append(f"### {name}\n\n{markdown_table(header, rows)}")
    return "\n\n".join(parts)


def _bold_largest(scores: Sequence[float | None]) -> list[str]:
    largest = max((score for score in scores if score is not None), default=None)
    return [
        cell(None) if s is None else f"**{s:.4f}**" if s == largest else f"{s:.4f}" for s in scores
    ]


def rankings_section(records: list[Record]) -> str:
    methods = list(by(records, "method"))
    rows = []
    for name in RANKING_SETS:
        found = by((r for r in records if r["set"] == name), "method")
        if found:
            shown = [mean_and_sd(found.get(method, []), "tau") for method in methods]
            rows.append([name, *shown, TAU_TO_REACH.get(name)])
    return (
        "## Rankings\n\n"
        "Kendall's τ, mean over 10 folds. *Baseline*, measured earlier with simple scripts, is the "
        "best of extra-trees, kernel ridge regression and boosted extra-trees on the same data."
        f"\n\n{markdown_table(['set', *methods, 'baseline'], rows)}"
    )


LINK_SCORES = {"auroc": "AUROC", "average_precision": "average precision"}
PROTEIN_SCORES = {
    "auroc": "new and known",
    "auroc_new": "new and new",
    "auroc_any": "new and any",
    "auroc_predicted": "new and known, by (7)",
    "auc_ts": "AUC(TS)",
    "auc_ls": "AUC(LS)",
}
PROTEIN_NOTE = (
    "Areas under the ROC curve. AUC(TS) ranks all pairs with a new protein together, AUC(LS) those "
    "of known proteins, both by the kernel (7) of G2007 between predicted points; in the first "
    "and third columns, known proteins have their exact points.\n\n"
)


def links_section(records: list[Record]) -> str:
    parts = [
        "## Links\n\n"
        "Areas under the ROC curve and under the precision-recall curve (average precision); mean "
        "and standard deviation over shufflings of the vertices into 10 folds (proteins: 5). The "
        "vertices of each fold are new once. G2007's enzyme network is not available; "
        "these networks are used instead. Drugs have one published structural similarity "
        "(SIMCOMP) and three fingerprints, and targets have the similarity of their sequences. "
        "There is no sequence similarity for ion channels, so the profile of links is used "
        "instead. *One similarity* and Kronecker RLS use SIMCOMP only, trees use the "
        "fingerprints, and the other methods use all four. Kronecker RLS uses λ = 1; λ and the "
        "smoothing of hilboost were chosen on other shufflings of the same data.\n\n"
        "Ranking of the methods: on G2007's enzymes, extra-trees are best (AUC .785), closely "
        "followed by boosting with random splits (.781). Bagging and boosting with exhaustive "
        "split search are far behind (.710, .703). Here, too, extra-trees and boosting with "
        "random splits are close, and boosting is ahead in the first column. Kernels on the "
        "inputs, which the paper's trees cannot use, are better than both on drugs, whose "
        "similarities are informative. They are worse than both on the yeast proteins, whose "
        "features are so uninformative that the degree of the known vertex is better than every "
        "model."
    ]
    for name, found in by(records, "set").items():
        within = any("auroc_new" in r for r in found)
        scores = PROTEIN_SCORES if within else LINK_SCORES
        rows = [
            [method, *(mean_and_sd(runs, score, 3) for score in scores), seconds(runs)]
            for method, runs in by(found, "method").items()
        ]
        header = ["method", *scores.values(), "all folds s"]
        parts.append(f"### {name}\n\n{PROTEIN_NOTE * within}{markdown_table(header, rows)}")
    return "\n\n".join(parts)


def targets_section(records: list[Record]) -> str:
    methods = [method for method in REGRESSORS if any(r["method"] == method for r in records)]
    rows, complete = [], []
    for name, found in by(records, "set").items():
        scores = {r["method"]: r["arrmse"] for r in found}
        smallest = min(scores.values())
        rows.append([name])
        for method in methods:
            score = scores.get(method)
            shown = cell(None) if score is None else f"{score:.4f}"
            rows[-1].append(f"**{shown}**" if score == smallest else shown)
        if len(scores) == len(methods):
            complete.append([scores[method] for method in methods])
    if complete:
        table = np.array(complete)
        ranks = 1 + (table[:, None, :] < table[:, :, None]).sum(axis=2).mean(axis=0)
        ratio = np.exp(np.log(table / table.min(axis=1, keepdims=True)).mean(axis=0))
        rows.append(["mean rank", *(f"{rank:.2f}" for rank in ranks)])
        rows.append(["score / best, geometric mean", *(f"{r:.4f}" for r in ratio)])
    spent = [sum(r["fit_s"] for r in records if r["method"] == method) for method in methods]
    rows.append(["seconds of all fits", *(f"{total:.0f}" for total in spent)])
    return (
        "## Multiple numeric targets\n\n"
        "Mulan data sets. The score is the root mean squared error divided by that of predicting "
        "the training mean, with squares pooled over the folds, averaged over the targets; 10 "
        "folds, or 5 above 500 rows or 200 columns. For every method, targets are standardized on "
        "the training rows. All methods run at their defaults except as stated in their names; "
        "XGBoost uses one tree for all targets, CatBoost MultiRMSE.\n\n"
        f"{markdown_table(['set', *methods], rows)}"
    )


def speed_section(records: list[Record]) -> str:
    parts = ["## Speed\n\nMedians of three runs; the methods take turns."]
    sets = by(records, "set")
    if images := sets.pop("1,000 images", None):
        names = ("fit_s", "factor_s", "nearest_s", "continuous_s")
        rows = [
            [method, *(seconds(runs, name) for name in names), runs[0]["rank"]]
            for method, runs in by(images, "method").items()
        ]
        header = ["", "fit s", "of which output space", "1,000 pre-images s"]
        header += ["any image s", "dimensions"]
        parts.append(
            "### 1,000 halves of images, Gaussian output kernel, M = 500, J = 20\n\n"
            f"{markdown_table(header, rows)}"
        )
    if full := sets.pop("7,291 x 128 to 128", None):
        cpu = {m: median(r["stage_cpu_s"] for r in runs) for m, runs in by(full, "method").items()}
        wall = {m: median(r["stage_s"] for r in runs) for m, runs in by(full, "method").items()}
        rows = [[m, f"{cpu[m]:.3g}", f"{wall[m]:.3g}"] for m in cpu]
        parts.append(
            "### 7,291 x 128 inputs, 128 outputs, one tree per stage for all outputs\n\n"
            "Time of one additional stage: the difference of two fits of different length. "
            "hilboost's trees have 20 splits; XGBoost has a depth of 6 (its default) or 21 "
            "leaves, and 256 bins.\n\n"
            f"{markdown_table(['', 'CPU s a stage', 's a stage'], rows)}"
        )
    parts.append(_growth_section(sets))
    return "\n\n".join(part for part in parts if part)


def _growth_section(sets: Table) -> str:
    points: dict[str, list[tuple[int, int, float, float]]] = {}
    for name, found in sets.items():
        rows, outputs = (int(part) for part in name.split(" rows x "))
        for method, runs in by(found, "method").items():
            costs = (median(r[score] for r in runs) for score in ("stage_cpu_s", "stage_s"))
            points.setdefault(method, []).append((rows, outputs, *costs))
    if not points:
        return ""
    sizes = sorted({point[:2] for found in points.values() for point in found})
    cost = {m: {point[:2]: point[2] for point in found} for m, found in points.items()}
    table = [
        [f"{n:,} x {r}", *(f"{cost[m][n, r]:.3g}" if (n, r) in cost[m] else None for m in cost)]
        for n, r in sizes
    ]
    for axis, what in ((0, "rows"), (1, "outputs")):
        slopes = [_slope(cost[method], axis) for method in cost]
        table.append([f"slope with {what}, log-log", *slopes])
    return (
        "### Scaling with rows and outputs\n\n"
        "CPU seconds per stage with 32 columns and 20 splits, by rows x outputs.\n\n"
        f"{markdown_table(['', *cost], table)}"
    )


def _slope(cost: dict[tuple[int, int], float], axis: int) -> str:
    """Of the sizes that share the most common other size."""
    others = [size[1 - axis] for size in cost]
    fixed = max(set(others), key=others.count) if others else None
    found = [(s[axis], c) for s, c in cost.items() if s[1 - axis] == fixed and c > 0]
    if len(found) < 2:
        return cell(None)
    return f"{np.polyfit(*np.log(np.array(found)).T, 1)[0]:.2f}"


SECTIONS: dict[str, Callable[[list[Record]], str]] = {
    "friedman": friedman_section,
    "usps": usps_section,
    "figure1": figure_section,
    "usps_full": full_section,
    "faces": faces_section,
    "labels": labels_section,
    "rankings": rankings_section,
    "links": links_section,
    "multi_target": targets_section,
    "speed": speed_section,
}


def page(records: list[Record], _: str) -> str:
    parts = [
        "# Structured outputs",
        sources(records),
        "G2007 is Geurts, Wehenkel and d'Alché-Buc, *Gradient boosting for kernelized output "
        "spaces*, ICML 2007. OK3 denotes output kernel trees, and OK3-et output kernel trees with "
        "random splits. Err_φ is the mean squared distance between the true and the predicted "
        "point of the output space, Err_Y that between the true and the predicted output.",
    ]
    for group, section in SECTIONS.items():
        if found := of_group(records, group):
            parts.append(section(found))
    parts.append(failures_section(records, ("set", "split", "method")))
    return "\n\n".join(part for part in parts if part)
