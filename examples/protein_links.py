"""Predict missing links: targets of new drugs, and a protein network that is hard to predict.

Left and middle: ROC and precision-recall curves for the targets of new drugs, from 10-fold
cross-validation.  The features are fingerprints of the drugs' structure, which are informative
about their targets.

Right: ``NetworkCompletion`` on 150 yeast proteins, for links between new and known proteins, from
5-fold cross-validation.  This is a negative result.  The kernel of the proteins is hardly
informative about their links, and the degree of the known protein, regardless of the new one, is
better than the model.  Always compare with this baseline ("degree" in the figure).

Run::

    python examples/protein_links.py

Data: ``yamanishi2008_dti.npz`` (G-protein-coupled receptors), ``yeast_ppi_xnet.npz``.  Takes less
than a minute.
"""

import numpy as np
from _shared import BLUE, GRAY, data, plt, save
from sklearn.model_selection import KFold

from hilboost import (
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
)
from hilboost.kernels import Tanimoto
from hilboost.network import BipartiteNetwork, LinkCurves, NetworkCompletion, link_curves

NAMES, COLORS = ("model", "degree"), (BLUE, GRAY)
LEGEND = {"handlelength": 1.2, "alignment": "left"}


def drugs() -> list[LinkCurves]:
    """Return the curves of the model and of the targets' degrees, pooled over the folds."""
    sets = data("yamanishi2008_dti")
    X, links = sets["gpcr_fp_maccs"], sets["gpcr_Y_drug_x_target"]
    structure = KernelBoostingRegressor(kernel=Tanimoto(), standardize=False)
    models = [
        OutputKernelBoostingRegressor(learner=structure, random_state=0),
        OutputKernelForestRegressor(min_samples_leaf=2, random_state=0),
    ]
    scores, degrees = np.zeros(links.shape), np.zeros(links.shape)
    for known, new in KFold(10, shuffle=True, random_state=0).split(X):
        network = BipartiteNetwork(models).fit(X[known], links[known])
        scores[new] = network.predict(X[new])
        degrees[new] = links[known].sum(axis=0)
    return [link_curves(links, scores), link_curves(links, degrees)]


def proteins() -> list[LinkCurves]:
    """Return the same curves for pairs of a new and a known protein."""
    sets = data("yeast_ppi_xnet")
    values, vectors = np.linalg.eigh(sets["K"])
    X = vectors * np.sqrt(values.clip(0))  # features whose inner products are the kernel
    truth, scores, degrees = [], [], []
    for known, new in KFold(5, shuffle=True, random_state=0).split(X):
        links = sets["A"][np.ix_(known, known)]
        network = NetworkCompletion(random_state=0)
        scores.append(network.fit(X[known], links).predict_kernel(X[new]))
        degrees.append(np.tile(links.sum(axis=0), (len(new), 1)))
        truth.append(sets["A"][np.ix_(new, known)])
    return [link_curves(np.vstack(truth), np.vstack(found)) for found in (scores, degrees)]


def main() -> None:
    """Compute the curves, print their areas, and draw the figure."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.75), layout="constrained")
    for axis, title, found in (
        (left, "Targets of new drugs:\nstructure tells", drugs()),
        (right, "New yeast proteins:\nworse than the degree", proteins()),
    ):
        print(f"{title.partition(':')[0]}: {found[0].n_links} links among {found[0].n_pairs} pairs")
        for name, color, curve in zip(NAMES, COLORS, found, strict=True):
            print(f"    {name:10} AUROC {curve.auroc:.3f}  AP {curve.average_precision:.3f}")
            label = f"{name} {curve.auroc:.2f}"
            axis.plot(curve.false_positive_rate, curve.true_positive_rate, color=color, label=label)
            if axis is left:
                label = f"{name} {curve.average_precision:.2f}"
                middle.plot(curve.recall, curve.precision, color=color, label=label)
        axis.set(title=title, xlabel="false positive rate", ylabel="true positive rate")
        axis.legend(loc="lower right", title="area", **LEGEND)
    middle.set(title="The same drugs:\nprecision and recall", xlabel="recall", ylabel="precision")
    middle.legend(loc="upper right", title="area", **LEGEND)
    ticks = np.linspace(0, 1, 5)
    for axis in (left, middle, right):
        axis.set(xlim=(0, 1), ylim=(0, 1.01), xticks=ticks, yticks=ticks, aspect="equal")
    save(figure, "protein_links")


if __name__ == "__main__":
    main()
