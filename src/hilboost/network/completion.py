"""Link prediction for new vertices of a network from their features (G2007, section 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY
from itertools import repeat
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, check_random_state

from hilboost.core.dtypes import Floats, Seed
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, shown
from hilboost.core.plain_values import is_name
from hilboost.estimators.output_kernel_boosting import OutputKernelBoostingRegressor
from hilboost.estimators.signatures import ExplainedParameters, public_prediction, with_parameters
from hilboost.network.curves import LinkCurves, curves_of_blocks, link_curves
from hilboost.network.graph import adjacency_matrix, diffusion_kernel
from hilboost.network.link_sets import LinkSets
from hilboost.network.validation import as_array, without_sparse
from hilboost.outputs import PrecomputedOutput
from hilboost.outputs.registry import as_output
from hilboost.tables.arrays import columns_of


@with_parameters
class NetworkCompletion(LinkSets, ExplainedParameters):
    """Predict the links of vertices that are not part of the known network.

    The diffusion kernel of two known vertices is high if many short paths connect them.  A model
    maps the features of the vertices to the feature space of this kernel and so predicts the
    kernel of new vertices.  Pairs with a high kernel value are predicted as linked.

    Parameters
    ----------
    model : output kernel regressor, optional
        By default ``OutputKernelBoostingRegressor(learner="extra_trees",
        random_state=random_state)``.  Its ``output`` must be the default, which becomes
        ``PrecomputedOutput()`` for the diffusion kernel, or ``PrecomputedOutput`` with an accuracy.
    coefficient : float
        Coefficient of the diffusion kernel.
    scaled : bool
        Scale the kernel to ones on the diagonal.
    known_points : {"exact", "predicted"}
        Points of the known vertices in the feature space of the kernel.  ``"exact"`` uses their
        points in the known network.  ``"predicted"`` uses the predictions of the model, so that
        every kernel value is ``<F(x), F(x')>`` (G2007, eq. 7); the model then stores the features
        of the known vertices.
    threshold : float or None
        Minimum predicted kernel value of linked pairs.  ``None`` selects the value that predicts
        the true number of links among the known vertices.  This is an in-sample choice: new
        vertices may get too few links, especially with models that fit closely.  With
        ``validation_fraction``, the number of links is scaled so that the held-out vertices get
        their true number of links.
    validation_fraction : float or None
        Fraction of the vertices to hold out for choosing the threshold and the number of stages.
        The number of stages maximizes the area under the ROC curve of the links between held-out
        and other vertices.  The final model is fitted to all vertices.
    random_state : int, RandomState or None
        Seed for the held-out vertices and the default model; not used for a ``model`` that you
        pass.

    Attributes
    ----------
    model_ : estimator
        The fitted model.
    threshold_ : float
    n_stages_ : int or None
        Number of stages chosen on held-out vertices.

    References
    ----------
    P. Geurts, L. Wehenkel, F. d'Alché-Buc, *Gradient boosting for kernelized output spaces*, 2007;
    Y. Yamanishi, J.-P. Vert, M. Kanehisa, *Supervised enzyme network inference*, 2005.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "coefficient": [Interval(Real, 0, None, closed="neither")],
        "scaled": ["boolean"],
        "known_points": [StrOptions({"exact", "predicted"})],
        "threshold": [Real, None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "random_state": ["random_state"],
    }

    model: Any = None
    _: KW_ONLY
    coefficient: float = 1.0
    scaled: bool = False
    known_points: str = "exact"
    threshold: float | None = None
    validation_fraction: float | None = None
    random_state: Seed = None

    def fit(self, X: Any, y: object) -> Self:
        """Fit the model to the known vertices.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix (n, d)
            Features of the vertices.  Sparse matrices are converted to dense arrays, here and in
            predictions.
        y : array-like (n, n), sparse matrix, or pairs (m, 2)
            Links: an adjacency matrix, or pairs of rows of ``X``.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a vertex is unknown, the matrix is not symmetric, the features are invalid, or there
            are no links; if ``validation_fraction`` is set and the model has no stages.
        """
        self._validate_params()
        X = _features(X)
        links = adjacency_matrix(y, len(X))
        if not links.any():
            raise InvalidData("the network has no links; pass at least one link.")
        self.n_stages_, times = None, 1.0
        self.calibration_ = None
        if self.validation_fraction is not None:
            self.n_stages_, times = self._chosen(X, links, self.validation_fraction)
        self.model_ = self._fitted(X, links, self.n_stages_)
        if self.known_points == "exact":
            self._known = self.model_.output_.encode_training(self._kernel(links))
            self._known_features = None
        else:
            self._known = self.model_.predict_embedding(X)
            self._known_features = X  # whose points change with the stages
        if self.threshold is None:
            pairs = np.triu_indices(len(links), 1)
            kernel = self.model_.predict_embedding(X) @ self._known.T
            self.threshold_ = _as_many(kernel[pairs], times * np.count_nonzero(links[pairs]))
        else:
            self.threshold_ = self.threshold
        return self

    def _fitted(self, X: Floats, links: Floats, n_stages: int | None) -> Any:
        model = self._model()
        if is_name(model.output, "linear"):
            model.set_params(output=PrecomputedOutput())
        if n_stages is not None:
            model.set_params(n_estimators=n_stages)
        return model.fit(X, self._kernel(links))

    def _model(self) -> Any:
        if self.model is None:
            return OutputKernelBoostingRegressor(
                learner="extra_trees", random_state=self.random_state
            )
        is_estimator = isinstance(self.model, BaseEstimator)
        known = self.model.get_params(deep=False) if is_estimator else {}
        if "output" not in known:
            raise InvalidType(
                "model must be an output kernel regressor, such as "
                f"OutputKernelBoostingRegressor(); got {self.model!r:.60}."
            )
        if self.validation_fraction is not None and "n_estimators" not in known:
            raise InvalidParameter(
                "validation_fraction selects the number of stages, but "
                f"{type(self.model).__name__} has no stages; set validation_fraction=None or use "
                "a model with n_estimators."
            )
        _check_output(known["output"], known["decode"])
        return clone(self.model)

    def _kernel(self, links: Floats) -> Floats:
        return diffusion_kernel(links, self.coefficient, scaled=self.scaled)

    def _chosen(self, X: Any, links: Floats, fraction: float) -> tuple[int, float]:
        """Choose the number of stages and the link ratio on held-out vertices.

        The link ratio is the number of predicted links per true link among the known vertices.
        The threshold itself cannot be transferred: kernel values depend on the network size.
        """
        n = len(X)
        order = check_random_state(self.random_state).permutation(n)
        n_held = min(max(1, round(fraction * n)), n - 1)
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
        truth, inner = links[np.ix_(held, kept)], links[np.ix_(kept, kept)]
        if not truth.any() or truth.all() or not inner.any():
            number = "all" if truth.all() else "no"
            where = f"the {n_held} held-out vertices and the" if inner.any() else "the"
            raise InvalidData(
                f"{number} pairs of {where} others are linked; choose another validation_fraction "
                "or random_state."
            )
        X_held, X_kept = _safe_indexing(X, held), _safe_indexing(X, kept)
        model = self._fitted(X_kept, inner, None)
        points = model.output_.encode_training(self._kernel(inner))
        best, n_stages, new, known = -1.0, 0, truth, inner
        staged = (model.staged_predict_embedding(rows) for rows in (X_held, X_kept))
        for stage, (raw, own) in enumerate(zip(*staged, strict=True), start=1):
            base = points if self.known_points == "exact" else own
            kernel = raw @ base.T
            area = link_curves(truth, kernel).auroc
            if area > best:
                best, n_stages, new, known = area, stage, kernel, own @ base.T
        within = np.triu_indices(len(kept), 1)
        linked = known[within] >= _as_many(new, int(np.count_nonzero(truth)))
        return n_stages, int(np.count_nonzero(linked)) / int(np.count_nonzero(inner[within]))

    def _fitted_models(self) -> Sequence[Any]:
        return [self.model_]

    def _link_scores(self, X: object) -> Floats:
        return self.predict_kernel(X)

    def predict_kernel(self, X: object, X2: object = None) -> Floats:
        """Predict the kernel between new vertices and the known ones, or other new ones.

        Parameters
        ----------
        X : array-like (m, d)
        X2 : array-like (k, d), optional
            Other new vertices; the known vertices by default.

        Returns
        -------
        (m, n) or (m, k) float64
        """
        check_is_fitted(self)
        points = self._predicted(X)
        return points @ (self._known if X2 is None else self._predicted(X2)).T

    def _predicted(self, X: object) -> Floats:
        """Predicted points of vertices, (m, r)."""
        return self.model_.predict_embedding(without_sparse(X, "X"))

    def staged_predict_kernel(self, X: object) -> Iterator[Floats]:
        """Predict the kernel with the known vertices after every stage.

        Parameters
        ----------
        X : array-like (m, d)

        Yields
        ------
        (m, n) float64
        """
        check_is_fitted(self)
        known: Iterator[Floats] = repeat(self._known)
        if self._known_features is not None:
            known = self.model_.staged_predict_embedding(self._known_features)
        staged = self.model_.staged_predict_embedding(without_sparse(X, "X"))
        for points, others in zip(staged, known, strict=False):
            yield points @ others.T

    @public_prediction
    def predict(self, X: object, X2: object = None) -> Any:
        """Predict the links of new vertices with the known ones, or with other new ones.

        Parameters
        ----------
        X : array-like (m, d)
        X2 : array-like (k, d), optional

        Returns
        -------
        (m, n) or (m, k) bool
        """
        return self.predict_kernel(X, X2) >= self.threshold_

    def curves(
        self, X: object, known_links: object, new_links: object = None
    ) -> dict[str, LinkCurves]:
        """Compute the ROC and precision-recall curves of new vertices.

        Parameters
        ----------
        X : array-like (m, d)
            New vertices.
        known_links : array-like (m, n)
            Their links with the known vertices.
        new_links : array-like (m, m), optional
            Their links with each other.

        Returns
        -------
        dict of LinkCurves
            ``"new-known"`` and, if ``new_links`` is given, ``"new-new"`` and ``"new-any"``: the
            pairs of both, ranked together (AUC(TS) in G2007, section 3).
        """
        kernel = self.predict_kernel(X)
        found = {"new-known": link_curves(known_links, kernel)}
        if new_links is not None:
            among = self.predict_kernel(X, X)
            found["new-new"] = link_curves(new_links, among, within=True)
            blocks = [(known_links, kernel, False), (new_links, among, True)]
            found["new-any"] = curves_of_blocks(blocks)
        return found

    def curves_within(self, X: object, links: object) -> LinkCurves:
        """Compute the ROC and precision-recall curves of all pairs of some vertices.

        Both points of a pair are predicted (G2007, eq. 7).  For the known vertices, the area under
        the ROC curve is AUC(LS) in G2007, section 3: it tells how closely the model fits.

        Parameters
        ----------
        X : array-like (m, d)
        links : array-like or sparse (m, m)
            Links between these vertices.

        Returns
        -------
        LinkCurves
        """
        return link_curves(links, self.predict_kernel(X, X), within=True)

    def score(self, X: object, y: object) -> float:
        """Compute the area under the ROC curve of the links between new and known vertices.

        Parameters
        ----------
        X : array-like (m, d)
        y : array-like (m, n)

        Returns
        -------
        float
        """
        return link_curves(y, self.predict_kernel(X)).auroc


def _features(X: Any) -> Any:
    """Validate features, one row per vertex.

    Tables keep their column names, and sparse matrices become dense: a network has few vertices,
    and its kernel is dense as well.
    """
    X = without_sparse(X, "X")
    if columns_of(X) is None:
        X = as_array(X, "X")
    if len(X.shape) != 2:
        raise InvalidData(f"X must be a matrix with one row per vertex; got shape {X.shape}.")
    return X


def _check_output(output: object, decode: str) -> None:
    """Reject an output space or a decoding that the diffusion kernel does not have."""
    space = as_output(output)
    is_gram = isinstance(space, PrecomputedOutput) and space.kernel is None
    if not (is_gram or is_name(output, "linear")):
        raise InvalidParameter(
            "the output space of a network is its diffusion kernel, but model has "
            f"output={shown(output)}; leave output out, or use PrecomputedOutput()."
        )
    if decode != "auto":
        raise InvalidParameter(
            f"a network predicts kernel values, which are not decoded, but model has "
            f"decode={decode!r}; leave decode out."
        )


def _as_many(values: Floats, n_links: float) -> float:
    """Return the threshold that links ``n_links`` pairs."""
    count = min(max(1, round(n_links)), values.size)
    return float(np.sort(values, axis=None)[-count])
