"""Boosted output kernel trees from the Gram matrix alone: Geurts et al. (2007), Algorithms 3 and 4.

Equation, algorithm and section numbers are the paper's. Every variance is summed afresh from
kernel values by (11), every matrix product of the boosting is a dense one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

SAME = 1e-10
"""A lead of a split by at most this part of the root's variance is a tie: the earlier one stays."""

NO_VARIANCE = 1e-12
"""A node with at most this part of the root's total variance is not split."""


@dataclass
class Node:
    """A node: its training rows, and its split once it is taken (left: ``x <= cut``)."""

    rows: np.ndarray
    total: float
    column: int | None = None
    cut: float | None = None
    score: float | None = None
    left: int | None = None
    right: int | None = None


@dataclass
class OutputKernelTree:
    """Nodes in order of creation: the root is 0, the left child comes before the right one."""

    nodes: list[Node] = field(default_factory=list)

    @property
    def members(self) -> dict[int, np.ndarray]:
        """Ascending training rows of every leaf, by the leaf's node number."""
        return {i: node.rows for i, node in enumerate(self.nodes) if node.left is None}

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Node number of the leaf that every row of ``X`` reaches, (Q,)."""
        leaves = np.zeros(len(X), dtype=np.int64)
        for q, x in enumerate(np.asarray(X, dtype=np.float64)):
            node = self.nodes[0]
            while node.left is not None:
                leaves[q] = node.left if x[node.column] <= node.cut else node.right
                node = self.nodes[leaves[q]]
        return leaves

    def weights(self, X: np.ndarray) -> np.ndarray:
        """P of section 2.4.2: 1/N_L where a training row shares the leaf of ``X[q]``, (Q, n)."""
        P = np.zeros((len(X), len(self.nodes[0].rows)))
        for q, leaf in enumerate(self.apply(X)):
            P[q, self.members[leaf]] = 1.0 / len(self.members[leaf])
        return P


def variance(K: np.ndarray, rows: np.ndarray) -> float:
    """Variance (11) of the outputs of some rows."""
    N = len(rows)
    local = K[np.ix_(rows, rows)]
    return float(np.trace(local) / N - np.sum(local) / N**2)


def score(K: np.ndarray, rows: np.ndarray, goes_left: np.ndarray) -> float:
    """Score(T, S) of section 2.4.1: the variance that a split of ``rows`` removes."""
    left, right, N = rows[goes_left], rows[~goes_left], len(rows)
    return (
        variance(K, rows) - len(left) / N * variance(K, left) - len(right) / N * variance(K, right)
    )


def cuts_of(values: np.ndarray) -> list[float]:
    """Ascending cuts halfway between neighboring distinct values."""
    distinct = np.unique(values)
    return [float(0.5 * (a + b)) for a, b in zip(distinct[:-1], distinct[1:], strict=True)]


def best_split(
    X: np.ndarray, K: np.ndarray, rows: np.ndarray, min_samples_leaf: int, lead: float
) -> tuple[int, float, float] | None:
    """Column, cut and score of the best split, columns and cuts ascending; None without any."""
    best = None
    for column in range(X.shape[1]):
        for cut in cuts_of(X[rows, column]):
            goes_left = X[rows, column] <= cut
            if min(np.sum(goes_left), np.sum(~goes_left)) < max(min_samples_leaf, 1):
                continue
            now = score(K, rows, goes_left)
            if best is None or now > best[2] + lead:
                best = (column, cut, now)
    return best


def grow_ok3(
    X: np.ndarray, K: np.ndarray, max_splits: int, min_samples_leaf: int = 1
) -> OutputKernelTree:
    """Grow an output kernel tree, always splitting the node of highest total variance N var."""
    X, K = np.asarray(X, dtype=np.float64), np.asarray(K, dtype=np.float64)
    everything = np.arange(len(X))
    root = Node(everything, len(X) * variance(K, everything))
    tree, waiting, taken = OutputKernelTree([root]), [0], 0
    lead = SAME * root.total / len(X)
    while waiting and taken < max_splits:
        chosen = waiting[0]
        for i in waiting[1:]:
            if tree.nodes[i].total > tree.nodes[chosen].total:
                chosen = i
        waiting.remove(chosen)
        node = tree.nodes[chosen]
        if len(node.rows) == 1 or node.total <= NO_VARIANCE * root.total:
            continue
        split = best_split(X, K, node.rows, min_samples_leaf, lead)
        if split is None:
            continue
        node.column, node.cut, node.score = split
        goes_left = X[node.rows, node.column] <= node.cut
        node.left, node.right = len(tree.nodes), len(tree.nodes) + 1
        for rows in (node.rows[goes_left], node.rows[~goes_left]):
            waiting.append(len(tree.nodes))
            tree.nodes.append(Node(rows, len(rows) * variance(K, rows)))
        taken += 1
    return tree


@dataclass
class OKBoost:
    """What Algorithm 3 leaves: the trees, and the W^m (n, n) from m = 0 on, shrunk for m >= 1."""

    trees: list[OutputKernelTree]
    W: list[np.ndarray]
    learning_rate: float


def okboost(
    X: np.ndarray,
    K: np.ndarray,
    n_stages: int,
    max_splits: int,
    learning_rate: float,
    min_samples_leaf: int = 1,
) -> OKBoost:
    """Algorithm 3 with the shrinkage of (9); W^0 is the unshrunk mean."""
    n = len(X)
    identity, Km = np.eye(n), np.asarray(K, dtype=np.float64)
    model = OKBoost([], [np.full((n, n), 1.0 / n)], learning_rate)
    for _ in range(n_stages):
        Km = (identity - model.W[-1]).T @ Km @ (identity - model.W[-1])
        tree = grow_ok3(X, Km, max_splits, min_samples_leaf)
        model.trees.append(tree)
        model.W.append(learning_rate * tree.weights(X).T)  # W_ij = w_i(x_j)
    return model


def okboost_weights(model: OKBoost, X_new: np.ndarray) -> np.ndarray:
    """W^F of Algorithm 4: weights of the training outputs for every new row, (Q, n)."""
    n = len(model.W[0])
    O_m, WF = np.eye(n), np.full((len(X_new), n), 1.0 / n)
    for m, tree in enumerate(model.trees, start=1):
        O_m = O_m - model.W[m - 1].T @ O_m
        WF = WF + model.learning_rate * tree.weights(X_new) @ O_m
    return WF


def predict_kernel(W: np.ndarray, K: np.ndarray, other: np.ndarray | None = None) -> np.ndarray:
    """Predicted kernel values (7) between the rows of ``W`` and of ``other`` (``W`` itself)."""
    return W @ K @ (W if other is None else other).T


def preimage_index(W: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Training output nearest to every prediction: lines 8 and 9 of Algorithm 4, first wins."""
    return np.argmin(np.diag(K)[None, :] - 2.0 * W @ K, axis=1)
