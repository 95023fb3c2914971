"""Rankings of a fixed number of items (label ranking), with three embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import OutputSpace, ShortNames
from hilboost.core.plain_values import all_text
from hilboost.outputs.agreement import kendall, share_equal, spearman
from hilboost.outputs.exact_embedding import ChoosingEmbedding
from hilboost.outputs.label_checks import as_objects, as_table, check_choice, in_words, refuse_rows
from hilboost.outputs.preimage import CANDIDATE_WAYS

EXACT_UP_TO = 8
"""Maximum number of items for which the optimal ranking is guaranteed."""

_CELLS_AT_ONCE = 2**20


def best_orders(preference: Floats, start: Ints | None = None) -> Ints:
    """Find the orders (n, K) that maximize the sum of preferences of earlier items over later ones.

    ``preference`` (n, K, K) is antisymmetric.  Up to ``EXACT_UP_TO`` items, the solution is found
    by dynamic programming over sets of items in O(n 2^K K).  Beyond that, a local search starts
    from the order of the row sums (Borda count) and from ``start``.  It repeats the best move of a
    single item until no move improves the order, in O(n K²) per move.  The better local optimum is
    returned.
    """
    n, K, _ = preference.shape
    few = K <= EXACT_UP_TO
    size = max(1, _CELLS_AT_ONCE // (K * 2**K if few else 8 * K**2))
    orders = np.empty((n, K), dtype=np.int64)
    for begin in range(0, n, size):
        rows = slice(begin, begin + size)
        if few:
            orders[rows] = _by_subsets(preference[rows])
        else:
            orders[rows] = _by_search(preference[rows], None if start is None else start[rows])
    return orders


def _by_subsets(preference: Floats) -> Ints:
    """Solve by dynamic programming: append the best last item to the best order of the others.

    Sets are encoded as bit masks, so each set comes after its subsets.
    """
    n, K, _ = preference.shape
    rows = np.arange(n)
    over = np.ascontiguousarray(preference.transpose(1, 2, 0))  # (K, K, n)
    gain = np.zeros((2**K, K, n))  # gain of placing an item after all items of the set
    value = np.zeros((2**K, n))
    last = np.zeros((2**K, n), dtype=np.int64)
    for items in range(1, 2**K):
        lowest = (items & -items).bit_length() - 1
        gain[items] = gain[items & (items - 1)] + over[lowest]
        members = np.array([j for j in range(K) if items >> j & 1])
        before = items ^ (1 << members)
        values = value[before] + gain[before, members]  # (members, n)
        best = values.argmax(axis=0)
        value[items] = values[best, rows]
        last[items] = members[best]
    orders = np.empty((n, K), dtype=np.int64)
    left = np.full(n, 2**K - 1)
    for place in range(K - 1, -1, -1):
        orders[:, place] = last[left, rows]
        left ^= 1 << orders[:, place]
    return orders


def _by_search(preference: Floats, start: Ints | None) -> Ints:
    borda = np.argsort(-preference.sum(axis=2), axis=1, kind="stable")
    found = _improved(preference, borda)
    if start is None:
        return found
    other = _improved(preference, start)
    better = _value(preference, other) > _value(preference, found)
    return np.where(better[:, None], other, found)


def _sorted(preference: Floats, orders: Ints) -> Floats:
    """Reorder the preferences by the given orders, (n, K, K)."""
    rows = np.arange(len(orders))[:, None, None]
    return preference[rows, orders[:, :, None], orders[:, None, :]]


def _value(preference: Floats, orders: Ints) -> Floats:
    """Compute the sum of preferences of each order, (n,)."""
    return np.triu(_sorted(preference, orders)).sum(axis=(1, 2))


def _improved(preference: Floats, start: Ints) -> Ints:
    n, K = start.shape
    place = np.arange(K)
    orders = start.copy()
    least = 1e-12 * np.abs(preference).sum(axis=(1, 2))
    active = np.arange(n)
    while len(active):
        now = orders[active]
        over = _sorted(preference[active], now)
        # Moving the item at position a to b reverses its pairs with all items in between.
        total = over.cumsum(axis=2)
        gain = np.einsum("iaa->ia", total)[:, :, None] - total + np.tril(over, -1)
        best = gain.reshape(len(active), -1).argmax(axis=1)
        improves = gain.reshape(len(active), -1)[np.arange(len(active)), best] > least[active]
        active = active[improves]
        a, b = (ends[improves, None] for ends in np.divmod(best, K))
        source = place + ((a <= place) & (place < b)) - ((b < place) & (place <= a))
        source = np.where(place == b, a, source)
        orders[active] = np.take_along_axis(now[improves], source, axis=1)
    return orders


Ranks = Ints
Nearest = Callable[[Floats], Ranks]


@dataclass(frozen=True)
class Rankings(OutputSpace):
    """Output space of rankings: the ranks of K items, (n, K), where 1 is best.

    Each rank occurs once, unless ties are accepted.

    Parameters
    ----------
    distance : {"kemeny", "spearman", "hamming"}, default="kemeny"
        Squared distance between rankings: the number of pairs of items in a different order
        (Kendall's τ), the squared differences of the ranks (Spearman's ρ), or the number of items
        with a different rank.  Embedded rankings have length 1 (Korba, Garcia and d'Alché-Buc
        2018): the signs of all pairs divided by √(K(K-1)/2), the centered ranks divided by their
        norm, or the permutation matrix divided by √K.
    ties : bool, default=False
        Whether to accept tied ranks, such as (1, 2, 2, 4) or (1, 2, 2, 3).  Only for "kemeny",
        where a tied pair has sign 0.  Decoded rankings have no ties unless they are chosen from
        labels with ties.

    Notes
    -----
    Decoding methods: ``"exact"`` finds the nearest of all K! rankings.  It uses sorting for
    "spearman", O(n K log K), one assignment problem per row for "hamming", O(n K³), and dynamic
    programming for "kemeny" up to K = 8, O(n 2^K K).  *For "kemeny" with K > 8, "exact" is a local
    search*: the Borda order and the nearest training ranking are improved by moving single items
    until no move helps, O(n K²) per move, and the better result is returned.  ``"nearest"``
    and ``"cosine"`` choose among the distinct training rankings.  They differ only with ties, where
    points have different lengths.  ``"borda"`` orders the items by their expected ranks, which all
    three embeddings determine, O(n K²).

    Metrics: ``"kendall"`` is the mean τ (decoded by ``"exact"``, from points of "hamming" by
    ``"borda"``), ``"spearman"`` the mean ρ (``"borda"``), and ``"hamming"`` the share of items with
    the right rank (``"exact"``).
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"ranking": {}}

    distance: str = "kemeny"
    ties: bool = False

    def fit(self, labels: object) -> RankingEmbedding:
        """See :class:`~hilboost.core.output_space.OutputSpace`."""
        check_choice("distance", self.distance, tuple(_GEOMETRIES))
        if self.ties and self.distance != "kemeny":
            raise InvalidParameter(
                f"ties=True requires distance='kemeny'; {self.distance!r} does not support ties."
            )
        ranks = _ranks(labels, None, self.ties)
        return RankingEmbedding(np.unique(ranks, axis=0), self.distance, self.ties)


@dataclass(frozen=True)
class RankingEmbedding(ChoosingEmbedding):
    """Fitted embedding of rankings; points have length 1 if there are no ties."""

    file_name = "rankings"
    label_kind = "ranks"

    training: Ranks  # (c, K) int64: the distinct training rankings
    distance: str
    ties: bool
    ways: ClassVar[tuple[str, ...]] = ("exact", *CANDIDATE_WAYS, "borda")

    def checked(self, labels: object, what: str = "Y") -> Ranks:
        """Validate ranks, (n, K) int64."""
        return _ranks(labels, self.training.shape[1], self.ties, what)

    def settled(self, labels: object) -> Ranks:
        """Convert lists of ranks to an array."""
        return self.checked(labels)

    def points(self, labels: Ranks) -> Floats:
        """Encode ranks as points, (n, K(K-1)/2), (n, K) or (n, K²)."""
        return _GEOMETRIES[self.distance].encode(labels)

    def _formula(self, way: str) -> Callable[[Floats], Ranks]:
        return self._borda if way == "borda" else self._exact

    def metrics(self) -> Mapping[str, OutputMetric]:
        """Kendall's τ, Spearman's ρ, and the share of right ranks."""
        signs_of_pairs = "borda" if self.distance == "hamming" else "exact"
        return {
            "kendall": OutputMetric(signs_of_pairs, self._on_checked(kendall)),
            "spearman": OutputMetric("borda", self._on_checked(spearman)),
            "hamming": OutputMetric("exact", self._on_checked(share_equal)),
        }

    def labels_of(self, codes: Floats) -> Ranks:
        """Return the ranks at these points; tied items have the first rank of their group."""
        means = _GEOMETRIES[self.distance].mean_ranks(codes).round(6)
        return rankdata(means, "min", axis=1).astype(np.int64)

    def _borda(self, raw: Floats) -> Ranks:
        means = _GEOMETRIES[self.distance].mean_ranks(raw)
        return _ranks_of_orders(np.argsort(means, axis=1, kind="stable"))

    def _exact(self, raw: Floats) -> Ranks:
        return _GEOMETRIES[self.distance].decode(raw, self._nearest)

    def _nearest(self, raw: Floats) -> Ranks:
        return np.asarray(self._own.choose(raw, "nearest"))


def _ranks(labels: object, width: int | None, ties: bool, what: str = "Y") -> Ranks:
    """Validate ranks, (n, K) int64."""
    if getattr(labels, "ndim", 2) == 1:  # a series of lists
        labels = as_objects(labels, "rankings", what)
    try:
        rows = as_table(labels, "the ranks of all items", width, what)
    except InvalidData as error:
        if not any(all_text([item]) for item in np.asarray(labels, dtype=object).flat):
            raise
        raise InvalidData(
            f"{error} They are the ranks of all items, 1 = best; convert names, the best first, "
            f"with [[list(row).index(name) + 1 for name in sorted(row)] for row in {what}]."
        ) from error
    K = rows.shape[1]
    if K < 2:
        raise InvalidData(
            f"row 0 of {what} has only one rank; a ranking requires at least 2 items."
        )

    def refuse(bad: NDArray[np.bool_], reason: str) -> None:
        refuse_rows(bad, lambda i: f"row {i} of {what}, {in_words(rows[i])}, {reason}")

    refuse((rows != np.floor(rows)).any(axis=1), f"must contain integers: ranks from 1 to {K}.")
    refuse(
        rows.min(axis=1) == 0,
        "contains rank 0; the best rank is 1. If your ranks start from 0, add 1 to all of them.",
    )
    ascending = np.sort(rows, axis=1)
    tied = (np.diff(ascending, axis=1) == 0).any(axis=1)
    whole = (ascending == np.arange(1, K + 1)).all(axis=1)
    refuse(~whole & ~tied, f"omits a rank; it must contain each of 1 to {K} once.")
    if ties:
        usual = _counts_as_usual(ascending)
        refuse(
            ~usual,
            "is not a valid ranking with ties; number the ranks like (1, 2, 2, 4) or (1, 2, 2, 3).",
        )
    else:
        refuse(
            tied,
            f"has tied ranks; it must contain each of 1 to {K} once. To allow ties, use "
            "Rankings('kemeny', ties=True).",
        )
    return rows.astype(np.int64)


def _counts_as_usual(ascending: Floats) -> NDArray[np.bool_]:
    """Whether the ranks of a row count like (1, 2, 2, 4) or like (1, 2, 2, 3)."""
    new = np.diff(ascending, axis=1, prepend=0) != 0
    places = np.arange(1, ascending.shape[1] + 1)
    gapped = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    gapless = new.cumsum(axis=1)
    return (ascending == gapless).all(axis=1) | (ascending == gapped).all(axis=1)


def _ranks_of_orders(orders: Ranks) -> Ranks:
    """Convert orders (items sorted by rank) to ranks of items, (n, K)."""
    ranks = np.empty_like(orders)
    np.put_along_axis(ranks, orders, np.arange(1, orders.shape[1] + 1)[None], axis=1)
    return ranks


def _encode_pairs(ranks: Ranks) -> Floats:
    """Encode the signs of all pairs (1 if the first item is better), normalized, (n, K(K-1)/2)."""
    first, second = np.triu_indices(ranks.shape[1], 1)
    return np.sign(ranks[:, second] - ranks[:, first]) / np.sqrt(len(first))


def _decode_pairs(raw: Floats, nearest: Nearest) -> Ranks:
    K = _n_items(raw.shape[1])
    first, second = np.triu_indices(K, 1)
    preference = np.zeros((len(raw), K, K))
    preference[:, first, second] = raw
    preference[:, second, first] = -raw
    start = None if K <= EXACT_UP_TO else np.argsort(nearest(raw), axis=1, kind="stable")
    return _ranks_of_orders(best_orders(preference, start))


def _mean_ranks_of_pairs(raw: Floats) -> Floats:
    """Ranks expected from the expected signs of all pairs, (n, K)."""
    K = _n_items(raw.shape[1])
    first, second = np.triu_indices(K, 1)
    signs = np.zeros((len(raw), K, K))
    signs[:, first, second] = raw * np.sqrt(len(first))
    signs -= signs.transpose(0, 2, 1)
    return np.asarray((K + 1) / 2 - signs.sum(axis=2) / 2)


def _n_items(n_pairs: int) -> int:
    return round((1 + np.sqrt(1 + 8 * n_pairs)) / 2)


def _encode_ranks(ranks: Ranks) -> Floats:
    K = ranks.shape[1]
    return np.asarray((ranks - (K + 1) / 2) / np.sqrt(K * (K**2 - 1) / 12))


def _mean_ranks(raw: Floats) -> Floats:
    K = raw.shape[1]
    return np.asarray(raw * np.sqrt(K * (K**2 - 1) / 12) + (K + 1) / 2)


def _decode_ranks(raw: Floats, nearest: Nearest) -> Ranks:
    return _ranks_of_orders(np.argsort(raw, axis=1, kind="stable"))


def _encode_places(ranks: Ranks) -> Floats:
    """Encode permutation matrices (items by ranks) divided by √K, (n, K²)."""
    n, K = ranks.shape
    places = ranks[:, :, None] == np.arange(1, K + 1)
    return places.reshape(n, K * K) / np.sqrt(K)


def _mean_ranks_of_places(raw: Floats) -> Floats:
    """Ranks expected from the expected permutation matrices, (n, K)."""
    K = round(np.sqrt(raw.shape[1]))
    return np.asarray(raw.reshape(-1, K, K) @ np.arange(1.0, K + 1) * np.sqrt(K))


def _decode_places(raw: Floats, nearest: Nearest) -> Ranks:
    K = round(np.sqrt(raw.shape[1]))
    tables = raw.reshape(len(raw), K, K)
    ranks = np.empty((len(raw), K), dtype=np.int64)
    for i, table in enumerate(tables):
        ranks[i] = linear_sum_assignment(table, maximize=True)[1] + 1
    return ranks


@dataclass(frozen=True)
class _Geometry:
    """Functions that encode rankings as points and decode points to the nearest ranking.

    ``decode`` may use the nearest training ranking as the starting point of a search.
    ``mean_ranks`` computes the expected ranks of the items from an expected point.
    """

    encode: Callable[[Ranks], Floats]
    decode: Callable[[Floats, Nearest], Ranks]
    mean_ranks: Callable[[Floats], Floats]


_GEOMETRIES = MappingProxyType(
    {
        "kemeny": _Geometry(_encode_pairs, _decode_pairs, _mean_ranks_of_pairs),
        "spearman": _Geometry(_encode_ranks, _decode_ranks, _mean_ranks),
        "hamming": _Geometry(_encode_places, _decode_places, _mean_ranks_of_places),
    }
)
