"""Graphs with labeled nodes, compared by the Weisfeiler-Lehman subtree kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.sparse import csc_array

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import OutputSpace, ShortNames
from hilboost.core.plain_values import is_integer
from hilboost.outputs.exact_embedding import ChoosingEmbedding
from hilboost.outputs.graph_search import BEAM, EditSearch, Refinement, alphabet_of, refine
from hilboost.outputs.label_checks import Graph, as_graphs
from hilboost.outputs.preimage import CANDIDATE_WAYS, Candidates

MOST_ITERATIONS = 100


@dataclass(frozen=True)
class Graphs(OutputSpace):
    """Output space of undirected graphs with labeled nodes.

    The embedding ``φ(y)`` counts the labels of the nodes and of their neighborhoods up to a depth
    (Weisfeiler-Lehman subtree kernel; Shervashidze et al. 2011, definition 5).  It does not depend
    on the order of the nodes.

    Parameters
    ----------
    n_iterations : int, default=3
        Depth of the neighborhoods; 0 counts only the labels of the nodes.
    normalize : bool, default=True
        Whether to divide by the norm, so that ``k(y, y) = 1``.

    Notes
    -----
    A label is a pair ``(node_labels, edges)``: a list of hashable node labels, such as
    ``["C", "O"]``, and a list of pairs of node indices, such as ``[(0, 1)]``.  Graphs of networkx
    are accepted as well; their node attribute ``"label"`` is the label of a node, or else ``None``.
    Predictions are a list of pairs of tuples, with sorted edges.

    Graphs that the Weisfeiler-Lehman test cannot tell apart have the same point, and so have those
    with proportional counts if ``normalize=True``, such as rings of different sizes.  Neighborhoods
    that occur in the same training graphs, equally often, share one coordinate.  ``norms`` counts
    all neighborhoods, also those that do not occur in training graphs.  A point is computed in
    O(h m log m) for m edges.

    Decoding methods: ``"nearest"`` and ``"cosine"`` choose among the distinct training graphs.
    ``"edits"`` searches all graphs with the node labels of the training graphs and at most as many
    nodes as the largest: it starts from the five nearest training graphs and edits single edges and
    nodes until this brings the embedding no nearer to the point (beam search).  The result is never
    worse than "nearest", but need not be the best of all graphs.  A step takes O(n² + n L) points
    for n nodes and L labels, and a search stops after 5,000.

    Metric: ``"accuracy"`` is the share of graphs that the Weisfeiler-Lehman test of depth
    ``n_iterations`` cannot tell from the true ones (decoded by ``"nearest"``).
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"graph": {}}

    n_iterations: int = 3
    normalize: bool = True

    def fit(self, labels: object) -> GraphEmbedding:
        """See :class:`~hilboost.core.output_space.OutputSpace`."""
        if not is_integer(self.n_iterations) or not 0 <= self.n_iterations <= MOST_ITERATIONS:
            raise InvalidParameter(
                f"n_iterations must be an integer from 0 to {MOST_ITERATIONS}; got "
                f"{self.n_iterations!r}."
            )
        training = list(dict.fromkeys(as_graphs(labels)))
        refinement, counts = refine(training, int(self.n_iterations))
        if not refinement.n_features:
            raise InvalidData("no graph of Y has nodes; at least one must have some.")
        shared = _shared_columns(counts, refinement.n_features)
        return GraphEmbedding(training, refinement, shared, self.normalize)


def _shared_columns(counts: list[Counter[int]], n_features: int) -> Ints:
    """Number the columns of features, (n_features,), where those with equal counts share one."""
    rows = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
    columns = np.array([feature for count in counts for feature in count], dtype=np.int64)
    values = np.array([n for count in counts for n in count.values()], dtype=np.int64)
    table = csc_array((values, (rows, columns)), shape=(len(counts), n_features))
    table.sort_indices()
    ends = table.indptr
    number: dict[tuple[bytes, bytes], int] = {}
    found = np.empty(n_features, dtype=np.int64)
    for j in range(n_features):
        part = slice(ends[j], ends[j + 1])
        key = table.indices[part].tobytes(), table.data[part].tobytes()
        found[j] = number.setdefault(key, len(number))
    return found


@dataclass(frozen=True)
class GraphEmbedding(ChoosingEmbedding):
    """Fitted embedding of graphs by counts of the neighborhoods in the training graphs."""

    file_name = "graphs"
    label_kind = "texts"

    training: list[Graph]  # list of (tuple, tuple): the distinct training graphs
    refinement: Refinement  # the neighborhoods of their nodes
    shared: Ints  # (f,) int64: column of each neighborhood
    normalize: bool
    ways: ClassVar[tuple[str, ...]] = (*CANDIDATE_WAYS, "edits")

    def checked(self, labels: object, what: str = "Y") -> list[Graph]:
        """Validate graphs, and sort their edges."""
        return as_graphs(labels, what)

    def points(self, labels: list[Graph]) -> Floats:
        """Return the counts of neighborhoods, (n, r)."""
        return self._candidates(labels).codes

    def _formula(self, way: str) -> Callable[[Floats], list[Graph]]:
        return self._edited

    def settled(self, labels: object) -> list[Graph]:
        """Convert graphs to pairs of tuples with sorted edges."""
        return as_graphs(labels)

    def metrics(self) -> Mapping[str, OutputMetric]:
        """Share of graphs that are equal up to the Weisfeiler-Lehman test."""
        return {"accuracy": OutputMetric("nearest", self._alike)}

    def _alike(self, labels: object, predicted: object) -> Floats:
        pairs = zip(as_graphs(labels), as_graphs(predicted), strict=True)
        depth = len(self.refinement.neighborhoods)
        counts = [refine([a, b], depth)[1] for a, b in pairs]
        return np.array([float(one == other) for one, other in counts])

    def _edited(self, raw: Floats) -> list[Graph]:
        """Search by edits from the nearest training graphs."""
        weights = raw[:, self.shared] / np.sqrt(np.bincount(self.shared))[self.shared]
        # In an order of their own, so that ties do not depend on the order of training rows.
        order = sorted(range(len(self.training)), key=lambda i: repr(self.training[i]))
        own = self._own
        costs = 0.5 * own.norms[order] - raw @ own.codes[order].T
        nearest = np.argsort(costs, axis=1, kind="stable")[:, :BEAM]
        return [
            self._search.best(row, [self.training[order[i]] for i in near])
            for row, near in zip(weights, nearest, strict=True)
        ]

    @cached_property
    def _search(self) -> EditSearch:
        most_nodes = max(len(nodes) for nodes, _ in self.training)
        return EditSearch(self.refinement, alphabet_of(self.training), most_nodes, self.normalize)

    def _candidates(self, labels: list[Graph]) -> Candidates:
        """Count neighborhoods; a shared coordinate is a projection on equal weights.

        Neighborhoods absent from the training graphs count in norms only.
        """
        sizes = np.bincount(self.shared)
        codes, squares = np.zeros((len(labels), len(sizes))), np.zeros(len(labels))
        for i, graph in enumerate(labels):
            counts = self.refinement.count(graph)
            squares[i] = sum(n**2 for n in counts.values())
            for feature, n in counts.items():
                if feature >= 0:
                    codes[i, self.shared[feature]] += n
        codes /= np.sqrt(sizes)
        if self.normalize:
            codes /= np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]
            squares = np.where(squares > 0, 1.0, 0.0)
        return Candidates(labels, codes, squares)
