"""Multilabel classification: predict the tags of documents, and compare decoding methods.

The labels are sets of tags of BibSonomy bookmarks, with 1,836 words and 159 tags.  One kernel
machine on the words predicts a point of the output space, with one score per tag.  The methods that
turn the scores into a set differ more than most learners do.  The figure shows the F1 per document,
averaged over the published test set, and the number of predicted tags, for each decoding method.
"cosine" chooses the training set of tags at the smallest angle.  "threshold" is optimal for the
Hamming loss and predicts few tags.  "f1" interprets scores as probabilities, which is inaccurate
here, and predicts many tags.

Run::

    python examples/tags.py

Data: ``mulan_multilabel.npz`` (bibtex; 4,880 training documents).  Takes about half a minute.
"""

import numpy as np
from _shared import BLUE, INK, ORANGE, data, plt, save
from sklearn.metrics import f1_score

from hilboost import KernelBoostingRegressor, OutputKernelBoostingRegressor
from hilboost.kernels import Cosine

BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 1}


def main() -> None:
    """Fit one model, apply all decoding methods, print some documents, and draw the figure."""
    bibtex = data("mulan_multilabel")
    X, Y, X_test, Y_test = (
        bibtex[f"bibtex_{part}"] for part in ("X_train", "Y_train", "X_test", "Y_test")
    )
    words = KernelBoostingRegressor(kernel=Cosine(), standardize=False)
    model = OutputKernelBoostingRegressor("label_set", learner=words, random_state=0).fit(X, Y)

    raw = model.predict_embedding(X_test)
    found = {way: model.output_.decode(raw, way) for way in model.output_.ways}
    scores = {
        way: f1_score(Y_test, sets, average="samples", zero_division=1)
        for way, sets in found.items()
    }
    print("way        samples-F1   tags a document")
    for way in sorted(found, key=scores.__getitem__, reverse=True):
        print(f"{way:10} {scores[way]:10.3f} {found[way].sum(axis=1).mean():17.2f}")

    print("\ndocument   true tags                predicted (cosine)")
    for i in np.random.default_rng(0).choice(len(Y_test), 8, replace=False):
        true, predicted = (
            " ".join(map(str, np.flatnonzero(sets[i]))) for sets in (Y_test, found["cosine"])
        )
        print(f"{i:8}   {true:24} {predicted}")

    draw(scores, {way: sets.sum(axis=1).mean() for way, sets in found.items()}, Y_test)


def draw(scores: dict[str, float], sizes: dict[str, float], Y_test: np.ndarray) -> None:
    """Draw F1 and the number of tags by decoding method, the best on top."""
    ways = sorted(scores, key=scores.__getitem__)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9), layout="constrained", sharey=True)
    for axis, values, form in ((left, scores, "{:.3f}"), (right, sizes, "{:.1f}")):
        colors = [ORANGE if way == ways[-1] else BLUE for way in ways]
        bars = axis.barh(ways, [values[way] for way in ways], color=colors, height=0.62)
        axis.bar_label(bars, [form.format(values[way]) for way in ways], padding=5, bbox=BEHIND)
        axis.grid(False, axis="y")
        axis.tick_params(axis="y", length=0)
        axis.margins(x=0.14)
    left.set(title="F1 of a document", xlabel="mean over 2,515 test documents")
    right.set(title="Tags predicted", xlabel="mean number a document")
    true = Y_test.sum(axis=1).mean()
    right.axvline(true, color=INK, linestyle="--", linewidth=1.6, zorder=0.9)
    right.text(true + 0.12, 0, f"true: {true:.1f}", va="center", bbox=BEHIND)
    figure.suptitle("bibtex: one model, five ways to decode")
    save(figure, "tags")


if __name__ == "__main__":
    main()
