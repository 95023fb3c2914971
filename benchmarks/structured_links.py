"""Links in networks, for ``structured.py``: drugs and their targets, proteins.

As in ``structured_images.py``, there is a plan and a function that does one run.  A split is one
shuffling of the vertices into folds; every method has the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from _common import arrays, timed
from hilboost import (
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.kernels import Kernel, OnColumns, Precomputed, Tanimoto
from hilboost.network import BipartiteNetwork, NetworkCompletion, link_curves
from hilboost.network.bipartite import profile_kernel
from hilboost.network.curves import curves_of_blocks
from structured_images import QUICK_STAGES, Plan, Scores

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]

DRUG_SETS = {"gpcr, new drugs": "gpcr", "ion channels, new drugs": "ic"}
TARGET_SET = "gpcr, new targets"
PROTEINS = "yeast, new proteins"
LINK_SETS = (*DRUG_SETS, TARGET_SET, PROTEINS)
FINGERPRINTS = ("maccs", "fp2", "ecfp4")
BOTH = "kernel machine & extra-trees"
TREES = ("OK3 single", "OK3 + bagging", "OK3 + ET", "OK3 + OKBoost", "OK3-et + OKBoost")
DRUG_METHODS = (BOTH, "kernel machine", "kernel machine, one similarity", *TREES)
RIVALS = ("Kronecker RLS", "Kronecker RLS, all similarities")
PROTEIN_METHODS = (*TREES, "kernel machine", "kernel machine + OKBoost")
DEGREE = "degree of the known vertex"
FOLDS, PROTEIN_FOLDS = 10, 5
FIRST_SHUFFLING = 1005  # settings were chosen on the five before it


def links_plan() -> Plan:
    for split in range(5):
        for name in LINK_SETS:
            for method in methods(name):
                if split > 0 and name in DRUG_SETS and method in TREES:
                    continue  # thousands of columns, fully grown
                yield name, method, split


def methods(name: str) -> tuple[str, ...]:
    if name == PROTEINS:
        return (*PROTEIN_METHODS, DEGREE)
    if name == TARGET_SET:
        return ("kernel machine", *RIVALS, DEGREE)
    return (*DRUG_METHODS, *RIVALS, DEGREE)


def folds(n: int, n_folds: int, split: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    order = np.random.RandomState(FIRST_SHUFFLING + split).permutation(n)
    for new in np.array_split(order, n_folds):
        yield np.setdiff1d(np.arange(n), new), new


def links_run(name: str, method: str, split: int, quick: bool, threads: int) -> Scores:
    run = proteins_run if name == PROTEINS else pairs_run
    return run(name, method, split, 2 if quick else None, QUICK_STAGES if quick else 500, threads)


# Drugs and targets


def pairs_run(
    name: str, method: str, split: int, n_folds: int | None, stages: int, threads: int
) -> Scores:
    """Mean areas over the folds of new rows, all pairs of a fold together."""
    links, predict = pairs(name, method, stages, split, threads)
    areas, seconds = [], 0.0
    for known, new in folds(len(links), n_folds or FOLDS, split):
        spent, scores = timed(lambda known=known, new=new: predict(known, new))
        seconds += spent
        found = link_curves(links[new], scores)
        areas.append((found.auroc, found.average_precision))
    auroc, average_precision = np.mean(areas, axis=0).tolist()
    return {"fit_s": seconds, "auroc": auroc, "average_precision": average_precision}


def pairs(
    name: str, method: str, stages: int, split: int, threads: int
) -> tuple[np.ndarray, Predict]:
    """Links of rows, which are new in turn, to columns; and scores of new rows from known ones."""
    data = arrays("yamanishi2008_dti")
    short = DRUG_SETS.get(name, "gpcr")
    links = data[f"{short}_Y_drug_x_target"].astype(np.float64)
    prints = [data[f"{short}_fp_{kind}"].astype(np.float64) for kind in FINGERPRINTS]
    drugs = semidefinite(data[f"{short}_S_drug"])
    all_drugs = semidefinite((drugs + sum(Tanimoto().block(p, p) for p in prints)) / 4)
    targets = f"{short}_orig_S_target"  # of ion channels there is none
    targets = semidefinite(data[targets]) if targets in data else None
    new_drugs = name in DRUG_SETS
    if not new_drugs:
        links = links.T.copy()
    if method == DEGREE:
        return links, lambda known, new: np.tile(links[known].sum(axis=0), (len(new), 1))
    if method in RIVALS:
        every = method == RIVALS[1]
        rows = (all_drugs if every else drugs) if new_drugs else targets
        columns = targets if new_drugs else all_drugs if every else drugs
        assert rows is not None
        return links, lambda known, new: kronecker(rows, columns, links[known], known, new)
    index = np.arange(len(links), dtype=np.float64)[:, None]
    if not new_drugs:
        assert targets is not None
        network = BipartiteNetwork(
            kernel_machine(Precomputed(targets), 0.1, threads), similarity=all_drugs, smoothing=3.0
        )
        return links, lambda known, new: network.fit(index[known], links[known]).predict(index[new])
    X = np.hstack([index, *prints])
    network = BipartiteNetwork(
        drug_models(method, drugs, prints, stages, split, threads),
        similarity="profile" if targets is None else targets,
        power=4.0 if targets is None else 2.0,
    )
    return links, lambda known, new: network.fit(X[known], links[known]).predict(X[new])


def drug_models(
    method: str, drugs: np.ndarray, prints: list[np.ndarray], stages: int, split: int, threads: int
) -> list[Any]:
    """Models of the rows (index, fingerprints)."""
    similarity: Kernel = OnColumns(Precomputed(drugs), [0])
    kernel, begin = similarity, 1
    for bits in prints:
        kernel = kernel + OnColumns(Tanimoto(), list(range(begin, begin + bits.shape[1])))
        begin += bits.shape[1]
    if method == "kernel machine, one similarity":
        return [kernel_machine(similarity, 1.0, threads)]
    models = []
    if method in (BOTH, "kernel machine"):
        models.append(kernel_machine(0.25 * kernel, 1.0, threads))
    if method != "kernel machine":
        tree = tree_model("OK3 + ET" if method == BOTH else method, stages, split, threads)
        if method == BOTH:
            tree.set_params(min_samples_leaf=2)
        models.append(make_pipeline(FunctionTransformer(without_index), tree))
    return models


def without_index(X: np.ndarray) -> np.ndarray:
    return X[:, 1:]


def kernel_machine(kernel: Kernel, penalty: float, threads: int) -> KernelBoostingRegressor:
    return KernelBoostingRegressor(
        kernel=kernel, regularization=penalty, standardize=False, stages="full", n_jobs=threads
    )


def tree_model(method: str, stages: int, split: int, threads: int) -> Any:
    """The methods of G2007's tables; fully grown trees and forests, boosted ones of 20 cuts."""
    common: dict[str, Any] = {"random_state": split, "n_jobs": threads}
    if method == "OK3 single":
        return OutputKernelTreeRegressor(**common)
    if method == "OK3 + bagging":
        more = {"splitter": "best", "bootstrap": True, "max_features": 1.0}
        return OutputKernelForestRegressor(**more, **common)
    if method == "OK3 + ET":
        return OutputKernelForestRegressor(**common)
    learner = "extra_trees" if method == "OK3-et + OKBoost" else "ok3"
    return OutputKernelBoostingRegressor(learner=learner, n_estimators=stages, **common)


def semidefinite(similarity: np.ndarray) -> np.ndarray:
    """Symmetric, without negative eigenvalues."""
    values, vectors = np.linalg.eigh((similarity + similarity.T) / 2)
    return (vectors * values.clip(0)) @ vectors.T


def kronecker(
    rows: np.ndarray, columns: np.ndarray | None, links: np.ndarray, known: Any, new: Any
) -> np.ndarray:
    """Ridge regression with the product of a kernel of rows and one of columns, λ = 1.

    van Laarhoven, Nabuurs and Marchiori (2011); without a similarity of columns it is that of
    their profiles.
    """
    between = profile_kernel(links.T) if columns is None else columns
    a, U = np.linalg.eigh(rows[np.ix_(known, known)])
    b, V = np.linalg.eigh(between)
    core = (U.T @ links @ V) * b / (np.outer(a, b) + 1.0)
    return rows[np.ix_(new, known)] @ U @ core @ V.T


# Proteins


def proteins_run(
    name: str, method: str, split: int, n_folds: int | None, stages: int, threads: int
) -> Scores:
    """Areas for pairs of a new protein with a known one, with another new one, and with any.

    Those of G2007 have predicted points of the known proteins: AUC(TS), and AUC(LS) of the pairs of
    known proteins.
    """
    data = arrays("yeast_ppi_xnet")
    links, kernel = data["A"].astype(np.float64), semidefinite(data["K"])
    values, vectors = np.linalg.eigh(kernel)
    X = vectors * np.sqrt(values.clip(0))  # columns whose inner products are the kernel
    if method.startswith("kernel machine"):
        X = np.arange(len(X), dtype=np.float64)[:, None]
    areas, seconds = [], 0.0
    for known, new in folds(len(links), n_folds or PROTEIN_FOLDS, split):
        within = links[np.ix_(known, known)]
        truth = links[np.ix_(new, known)], links[np.ix_(new, new)]
        if method == DEGREE:
            scores = np.tile(within.sum(axis=0), (len(new), 1))
            areas.append({"auroc": link_curves(truth[0], scores).auroc, "auroc_new": 0.5})
            continue
        network = NetworkCompletion(protein_model(method, kernel, stages, split, threads))
        spent, _ = timed(lambda a=known, b=within, net=network: net.fit(X[a], b))
        seconds += spent
        curves = network.curves(X[new], *truth)
        # What known_points="predicted" does, without another fit.
        points = network.model_.predict_embedding(X[known])
        by_7 = network.model_.predict_embedding(X[new]) @ points.T
        blocks = [(truth[0], by_7, False), (truth[1], network.predict_kernel(X[new], X[new]), True)]
        areas.append(
            {
                "auroc": curves["new-known"].auroc,
                "auroc_new": curves["new-new"].auroc,
                "auroc_any": curves["new-any"].auroc,
                "auroc_predicted": link_curves(truth[0], by_7).auroc,
                "auc_ts": curves_of_blocks(blocks).auroc,
                "auc_ls": network.curves_within(X[known], within).auroc,
            }
        )
    means = {name: float(np.mean([area[name] for area in areas])) for name in areas[0]}
    return {"fit_s": seconds, **means}


def protein_model(method: str, kernel: np.ndarray, stages: int, split: int, threads: int) -> Any:
    if not method.startswith("kernel machine"):
        return tree_model(method, stages, split, threads)
    diagonal = float(np.diagonal(kernel).mean())
    learner = kernel_machine(Precomputed(kernel / diagonal), 1.0, threads)
    boosted = {"n_estimators": 100, "learning_rate": 0.1} if "OKBoost" in method else {}
    plain = {"n_estimators": 1, "learning_rate": 1.0}
    return OutputKernelBoostingRegressor(
        learner=learner, random_state=split, n_jobs=threads, **(boosted or plain)
    )
