"""Label ranking: predict an order of eleven items.

A ranking is represented by the signs of all pairs of items, so that squared distances count the
pairs in a different order.  The ranking nearest to a predicted point maximizes Kendall's τ.  The
figure shows a histogram of τ between true and predicted rankings, from 10-fold cross-validation,
compared with the single ranking that is best on average.  It also shows the row with the median τ,
item by item.

Run::

    python examples/rank_labels.py

Data: ``label_ranking.npz`` (vowel, one of the KEBI data sets; the inputs are real, and its authors
generated the rankings from the probabilities of a classifier).  Takes a few seconds.
"""

import numpy as np
from _shared import BLUE, GRAY, ORANGE, data, plt, save
from scipy.stats import kendalltau
from sklearn.model_selection import KFold

from hilboost import OutputKernelBoostingRegressor


def main() -> None:
    """Cross-validate, compare with a constant ranking, and draw the figure."""
    sets = data("label_ranking")
    X, ranks = sets["vowel_X"], sets["vowel_ranks"]
    predicted, constant = np.empty_like(ranks), np.empty_like(ranks)
    for learn, test in KFold(10, shuffle=True, random_state=0).split(X):
        model = OutputKernelBoostingRegressor("ranking", learner="extra_trees", random_state=0)
        predicted[test] = model.fit(X[learn], ranks[learn]).predict(X[test])
        mean_rank = ranks[learn].mean(axis=0)
        constant[test] = 1 + np.argsort(np.argsort(mean_rank))
    tau, tau_constant = kendall(ranks, predicted), kendall(ranks, constant)
    print(f"Kendall's τ, mean over {len(X)} rows of {ranks.shape[1]} items:")
    print(f"    predicted         {tau.mean():.3f}")
    print(f"    constant ranking  {tau_constant.mean():.3f}")
    print(f"    rows without an error: {(tau == 1).mean():.0%}")
    draw(ranks, predicted, tau, tau_constant)


def kendall(true: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return Kendall's τ of every row."""
    return np.array([kendalltau(*pair).statistic for pair in zip(true, found, strict=True)])


def draw(
    ranks: np.ndarray, predicted: np.ndarray, tau: np.ndarray, tau_constant: np.ndarray
) -> None:
    """Draw histograms of τ, and one row as lines from true to predicted ranks."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4.6), layout="constrained", width_ratios=(1.9, 1)
    )
    bins = np.linspace(-1, 1, 41)
    for values, color, name in (
        (tau_constant, GRAY, "constant ranking"),
        (tau, BLUE, "predicted"),
    ):
        label = f"{name}, mean {values.mean():.2f}"
        left.hist(values, bins, color=color, alpha=0.85, label=label)
    left.set(title="Agreement with the true ranking", xlabel="Kendall's τ of a row", ylabel="rows")
    left.set(xlim=(-1, 1), xticks=np.linspace(-1, 1, 5))
    left.legend(loc="upper left", borderaxespad=1)

    row = int(np.argsort(tau, kind="stable")[len(tau) // 2])
    for item, (a, b) in enumerate(zip(ranks[row], predicted[row], strict=True)):
        right.plot([0, 1], [a, b], "o-", color=BLUE if a == b else ORANGE, markersize=7)
        right.text(-0.1, a, chr(ord("A") + item), ha="right", va="center")
        right.text(1.1, b, chr(ord("A") + item), ha="left", va="center")
    right.set(xlim=(-0.35, 1.35), xticks=[0, 1], xticklabels=["true", "predicted"])
    right.set(ylim=(len(ranks[row]) + 0.6, 0.4), yticks=[1, 6, 11], ylabel="rank")
    right.set_title(f"The median row, τ = {tau[row]:.2f}")
    right.grid(False)
    save(figure, "rank_labels")


if __name__ == "__main__":
    main()
