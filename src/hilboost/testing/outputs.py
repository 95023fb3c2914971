"""Contract tests of output spaces."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.labels import take_labels
from hilboost.core.output_space import Embedding
from hilboost.estimators import OutputKernelForestRegressor, OutputKernelTreeRegressor
from hilboost.testing.candidates import LabelContract
from hilboost.testing.contract import ensure, ensure_close, ensure_same_labels

_N = 12
_ROUNDING = 1e-12
"""On some processors, the last digits of matrix products depend on the number of rows."""


class OutputSpaceContract(LabelContract):
    """Tests of an output space: points, decoding, candidates, errors, and a model with it.

    Attributes
    ----------
    exact : tuple of str
        Decoding methods that recover every label from its point.
    distinct : bool
        Whether different labels have different points.
    ordered : bool
        Whether the order of the training rows may change the coordinates of points.

    Examples
    --------
    >>> from hilboost.outputs import Rankings
    >>> from hilboost.testing import OutputSpaceContract
    >>> class TestRankings(OutputSpaceContract):
    ...     exact = ("exact",)
    ...
    ...     def make(self):
    ...         return Rankings()
    ...
    ...     def labels(self, rng, n):
    ...         return np.array([rng.permutation(4) + 1 for _ in range(n)])
    """

    exact: tuple[str, ...] = ()
    distinct: bool = True
    ordered: bool = False

    def labels(self, rng: np.random.Generator, n: int) -> Any:
        """Draw valid labels at random.

        Parameters
        ----------
        rng : numpy.random.Generator
        n : int

        Returns
        -------
        array or list of n labels

        Raises
        ------
        NotImplementedError
            If labels were not given, and the subclass does not override this method.
        """
        if drawn := self._drawn(rng, n):
            return drawn[0]
        raise NotImplementedError(f"{type(self).__name__}.labels must return valid labels.")

    def pair(self, a: object, b: object) -> float | None:
        """Compute the kernel of two labels with a simple reference implementation.

        Parameters
        ----------
        a, b : label

        Returns
        -------
        float or None
            ``None``, the default, if there is no reference implementation.
        """
        return None

    def settled(self, labels: object) -> Any:
        """Convert labels to the form returned by ``decode``; by default, they are unchanged.

        Parameters
        ----------
        labels : array or list of n labels

        Returns
        -------
        array or list of n labels
        """
        return labels

    def build(self, **parameters: Any) -> Any:
        """Create a small forest with the output space."""
        small = {"n_estimators": 3, "random_state": 0}
        return OutputKernelForestRegressor(self.make(), **small | parameters)

    def table(self, n: int = 40) -> tuple[Any, Any]:
        """Draw distinct random inputs, and labels."""
        rng = np.random.default_rng(3)
        return rng.normal(size=(n, 3)), self.labels(rng, n)

    def own_classes(self, model: Any) -> Iterable[type]:
        """Return the classes of the output space and of its embedding."""
        return (type(self.make()), type(model.output_))

    def draw(self, seed: int = 0) -> Any:
        """Draw labels with a fixed seed.

        Parameters
        ----------
        seed : int

        Returns
        -------
        array or list of labels
        """
        return self.labels(np.random.default_rng([seed, 5]), _N)

    def fitted(self) -> tuple[Embedding, Any, Floats]:
        """Return an embedding, its training labels, and points near the labels' points.

        Returns
        -------
        tuple
            Embedding, labels, and points (n, r) float64.
        """
        labels = self.draw()
        embedding = self.make().fit(labels)
        codes = embedding.encode(labels)
        noise = np.random.default_rng(1).normal(size=codes.shape)
        return embedding, labels, codes + noise / np.sqrt(codes.shape[1])

    def test_points_are_rows_of_doubles(self) -> None:
        """``encode`` returns (n, r) float64, and there is at least one decoding method."""
        embedding, labels, _ = self.fitted()
        codes = embedding.encode(labels)
        got = f"{codes.dtype} of shape {codes.shape}"
        said = f"encode must return float64 of shape (n, r); got {got}."
        ensure(codes.dtype == np.float64 and codes.ndim == 2 and len(codes) == _N, said)
        ensure(len(embedding.ways) > 0, "ways must contain at least one decoding method.")

    def test_products_of_points_are_the_kernel(self) -> None:
        """Inner products and norms agree with :meth:`pair`, if it is defined."""
        embedding, labels, _ = self.fitted()
        codes = embedding.encode(labels)
        for some in (labels, self.draw(1)):
            points = embedding.encode(some)
            norms = embedding.norms(some)
            said = "norms must not be less than the squared lengths of the points."
            ensure((norms >= (points**2).sum(axis=1) * (1 - 1e-9) - 1e-9).all(), said)
            if self.pair(labels[0], labels[0]) is None:
                continue
            expected = np.array([[self.pair(a, b) for b in labels] for a in some], dtype=float)
            said = "The inner products of points must equal the kernel."
            ensure_close(points @ codes.T, expected, said, 1e-7, 1e-7)
            diagonal = np.array([self.pair(a, a) for a in some], dtype=float)
            said = "norms must equal the kernel of each label with itself."
            ensure_close(norms, diagonal, said, 1e-9, 1e-12)

    def test_training_labels_are_found_again(self) -> None:
        """Decoding method "nearest" recovers the training labels from their points."""
        embedding, labels, _ = self.fitted()
        if "nearest" not in embedding.ways:
            return
        codes = embedding.encode(labels)
        found = embedding.decode(codes, "nearest")
        if self.distinct:
            said = "'nearest' must recover the training labels from their points."
            ensure_same_labels(found, self.settled(labels), said)
        said = "The decoded labels must have the points from which they were decoded."
        ensure_close(embedding.encode(found), codes, said, 1e-9, 1e-9)

    def test_exact_ways_find_labels_that_were_never_seen(self) -> None:
        """The methods in :attr:`exact` recover labels that do not occur in training."""
        embedding = self.make().fit(self.draw())
        labels = self.draw(1)
        for way in self.exact:
            ensure(way in embedding.ways, f"{way!r} must be one of the ways {embedding.ways}.")
            said = f"{way!r} must recover each label from its point."
            ensure_same_labels(
                embedding.decode(embedding.encode(labels), way), self.settled(labels), said
            )

    def test_exact_pre_images_are_as_near_as_any_training_label(self) -> None:
        """The first method in :attr:`exact` is at least as good as "nearest"."""
        embedding, _, raw = self.fitted()
        if not self.exact or "nearest" not in embedding.ways:
            return

        def distance(way: str) -> Floats:
            return ((embedding.encode(embedding.decode(raw, way)) - raw) ** 2).sum(axis=1)

        said = f"No training label may be nearer than the label found by {self.exact[0]!r}."
        ensure((distance(self.exact[0]) <= distance("nearest") + 1e-9).all(), said)

    def test_rows_are_encoded_and_decoded_one_by_one(self) -> None:
        """The point and the decoded label of a row do not depend on other rows."""
        embedding, labels, raw = self.fitted()
        raw.flags.writeable = False
        order = np.random.default_rng(2).permutation(_N)
        ensure_close(
            embedding.encode(take_labels(labels, order[:7])),
            embedding.encode(labels)[order[:7]],
            "The point of a label must not depend on other rows.",
            rtol=_ROUNDING,
            atol=_ROUNDING,
        )
        for way in embedding.ways:
            whole = embedding.decode(raw, way)
            said = f"decode with {way!r} must return {_N} labels; got {len(whole)}."
            ensure(len(whole) == _N, said)
            for rows in (order, np.array([3])):
                said = f"A label decoded with {way!r} must not depend on other rows."
                ensure_same_labels(embedding.decode(raw[rows], way), take_labels(whole, rows), said)

    def test_predictions_are_labels_of_the_kind_given(self) -> None:
        """Decoded labels are valid labels of the same type as the training labels."""
        embedding, labels, raw = self.fitted()
        kind = type(self.settled(labels)[0])
        for way in embedding.ways:
            found = embedding.decode(raw, way)
            said = f"Labels decoded with {way!r} must be valid inputs of encode."
            ensure(embedding.encode(found).shape == raw.shape, said)
            ensure(
                isinstance(found[0], kind),
                f"Labels decoded with {way!r} must be of type {kind.__name__}; got "
                f"{type(found[0]).__name__}.",
            )

    def test_the_order_of_training_rows_does_not_matter(self) -> None:
        """The order of the training rows has no effect, unless :attr:`ordered` is set."""
        if self.ordered:
            return
        one, labels, raw = self.fitted()
        order = np.random.default_rng(3).permutation(_N)
        other = self.make().fit(take_labels(labels, order))
        said = "Points must not depend on the order of the training rows."
        ensure_close(other.encode(labels), one.encode(labels), said)
        if self.distinct:
            for way in one.ways:
                said = (
                    f"Labels decoded with {way!r} must not depend on the order of the training "
                    "rows."
                )
                ensure_same_labels(other.decode(raw, way), one.decode(raw, way), said)

    def test_training_labels_are_taken_by_position(self) -> None:
        """``take_rows`` selects the training labels of the given rows."""
        labels, rows = self.draw(), np.array([7, 0, 3])
        space = self.make()
        taken = space.take_rows(labels, rows)
        said = "take_rows must select the labels of the given rows."
        ensure_same_labels(taken, take_labels(labels, rows), said)
        embedding = space.fit(labels)
        said = "take_rows must select the labels of the given rows."
        ensure_close(
            embedding.encode(taken), embedding.encode(labels)[rows], said, _ROUNDING, _ROUNDING
        )

    def test_a_pickle_does_not_grow_by_use(self) -> None:
        """Pickles do not contain values that are computed on demand."""
        embedding, _, raw = self.fitted()
        if not self.saved:
            return
        before = pickle.dumps(embedding)
        way = embedding.ways[-1]
        found = embedding.decode(raw, way)
        said = "Decoding must not increase the size of the pickled embedding."
        ensure(len(pickle.dumps(embedding)) == len(before), said)
        said = "An unpickled embedding must decode to equal labels."
        ensure_same_labels(pickle.loads(before).decode(raw, way), found, said)

    def test_labels_are_not_changed_and_not_kept(self) -> None:
        """Labels are not modified, and modifying decoded labels does not change the embedding."""
        embedding, labels, _ = self.fitted()
        raw, way = embedding.encode(labels), embedding.ways[-1]
        before = embedding.decode(raw, way)
        if isinstance(labels, np.ndarray):
            labels.flags.writeable = False
            self.make().fit(labels)
            embedding.encode(labels)
        again = embedding.decode(raw, way)
        ensure_same_labels(again, before, "Decoding twice must give equal labels.")
        for label in again:
            if isinstance(label, set):
                label.add("other")
        said = "Modifying decoded labels must not change the embedding."
        ensure_same_labels(embedding.decode(raw, way), before, said)

    def test_models_fit(self) -> None:
        """A forest predicts labels, and a fully grown tree reproduces the training points."""
        X, labels = self.table()
        model = self.build().fit(X, labels)
        for way in model.output_.ways:
            found = model.set_params(decode=way).predict(X[:7])
            ensure(len(found) == 7, f"predict must return 7 labels for 7 rows; got {len(found)}.")
        whole = model.predict_embedding(X)
        ensure(np.isfinite(whole).all(), "Predicted points must be finite.")
        ensure(model.score(X, labels) <= 1, "The score must not exceed 1.")
        tree = OutputKernelTreeRegressor(self.make()).fit(X, labels)
        said = "A tree with one row per leaf must predict the points of the training labels."
        ensure(abs(tree.embedding_loss(X, labels)) < 1e-8, said)
