"""Shapley values of predictions, as a method of estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hilboost.backends.threads import threads_for
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, counted, shown, unknown_name
from hilboost.estimators.fitted_properties import FittedProperties
from hilboost.estimators.signatures import public_methods
from hilboost.tables.arrays import without_frame
from hilboost.tables.blocks import as_table

if TYPE_CHECKING:
    from hilboost.export.shapley import ShapInteractions, ShapValues

_METHODS = ("interventional", "path_dependent")
_FEWEST_ROWS, _MOST_ROWS = 20, 200


@public_methods
class ShapleyValues(FittedProperties):
    """Mixin for Shapley values."""

    def shap_values(
        self,
        X: object,
        background: object = None,
        *,
        method: str = "interventional",
        n_orders: int | None = None,
    ) -> ShapValues:
        """Divide each raw prediction among the columns of ``X``, by Shapley values.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            Rows to explain.
        background : array-like or data frame (m, d), optional
            Rows that define the mean prediction from which contributions are counted, such as 100
            rows of the training data.  By default, up to 200 of the rows of ``X``.
        method : {"interventional", "path_dependent"}, default="interventional"
            The prediction for a set of known columns: the mean prediction of the background rows
            with these columns replaced, or the mean over the leaves that the known columns do not
            exclude, by the numbers of background rows in the nodes.  Stages that are not trees use
            the former.
        n_orders : int, optional
            Number of random orders of the columns, and of their reverses, for kernel stages and
            other stages that are neither trees nor linear functions.  At least 2.  By default, 32,
            doubled until all standard errors are below 5 % of the standard deviation of the
            predictions of the background, or until the next doubling would take more than a few
            seconds: then, a warning gives the largest error.

        Returns
        -------
        ShapValues
            ``values`` (n, d), or (n, d, r) for r outputs, ``base_values``, ``standard_errors`` of
            values that are estimated, and ``explanation()`` for the plots of the package shap.

        Raises
        ------
        InvalidData
            ``X`` has too few rows to be its own background.
        InvalidParameter
            ``method`` is not known, or ``n_orders`` is too small.
        IncompatibleParts
            A path of a tree is too long.

        Notes
        -----
        Values add up to the raw prediction.  Those of trees and linear functions are exact.  Those
        of other stages are means over random orders of the columns; their standard errors decrease
        with the square root of ``n_orders``, and their cost is that of ``2 n_orders (d + 1)``
        predictions for each row.  The columns of the target encoding count as the column that they
        encode; the value of a column that encodes a pair of columns is divided equally among the
        two.

        References
        ----------
        Lundberg et al., *From local explanations to global understanding with explainable AI for
        trees*, 2020.
        Štrumbelj & Kononenko, *Explaining prediction models and individual predictions with feature
        contributions*, 2014.
        """
        from hilboost.export.shapley import ShapValues, shapley_values

        check_is_fitted(self)
        if n_orders is not None and n_orders < 2:
            raise InvalidParameter(f"n_orders must be at least 2; got {shown(n_orders)}.")
        rows, others, n_threads = self._explained(X, background, method)
        n_orders = None if n_orders is None else int(n_orders)
        values, base, errors = shapley_values(
            self.fitted_, rows, others, method == "path_dependent", n_orders, n_threads
        )
        if errors is not None and errors.shape[2] == 1:
            errors = errors[:, :, 0]
        values, base_values, seen, names = self._shown(values, base, X, rows)
        return ShapValues(values, base_values, seen, names, errors)

    def shap_interaction_values(
        self, X: object, background: object = None, *, method: str = "interventional"
    ) -> ShapInteractions:
        """Divide each raw prediction among the columns and the pairs of columns of ``X``.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            Rows to explain.
        background : array-like or data frame (m, d), optional
            As in :meth:`shap_values`.
        method : {"interventional", "path_dependent"}, default="interventional"
            As in :meth:`shap_values`.

        Returns
        -------
        ShapInteractions
            ``values`` (n, d, d), or (n, d, d, r) for r outputs, and ``base_values``.

        Raises
        ------
        InvalidData
            ``X`` has too few rows to be its own background.
        InvalidParameter
            ``method`` is not known.
        IncompatibleParts
            A path of a tree is too long, or some stages are neither trees nor linear functions.

        Notes
        -----
        The values are exact Shapley interaction values.  Those of a row and a column add up to the
        Shapley value of the column, and all values of a row to the raw prediction.  The memory is
        ``n d² r`` numbers: explain some rows at a time if there are many columns.

        References
        ----------
        Fujimoto et al., *Axiomatic characterizations of probabilistic and cardinal-probabilistic
        interaction indices*, 2006; Lundberg et al. 2020, section 2.4 of the supplement.
        """
        from hilboost.export.shapley import ShapInteractions, interaction_values

        check_is_fitted(self)
        rows, others, n_threads = self._explained(X, background, method)
        by_paths = method == "path_dependent"
        values, base = interaction_values(self.fitted_, rows, others, by_paths, n_threads)
        values, base_values, seen, names = self._shown(values, base, X, rows)
        return ShapInteractions(values, base_values, seen, names)

    def _explained(self, X: object, background: object, method: str) -> tuple[Floats, Floats, int]:
        """Validate; return the rows, the background, and the number of threads."""
        if method not in _METHODS:
            raise unknown_name("method", method, _METHODS)
        rows = as_table(self._checked(X)).array()
        if background is None:
            others = _some_of(rows)
        elif getattr(background, "ndim", 2) == 1:
            raise InvalidData(
                "background must be a table of rows, such as X.sample(100); write a single row as "
                "X.iloc[:1]."
            )
        else:
            try:
                others = as_table(self._checked(background)).array()
            except InvalidData as error:
                raise type(error)(f"background: {error}") from None
        n_threads = threads_for(self.n_jobs, rows.size * self.fitted_.model.cost_per_row)
        return rows, others, n_threads

    def _shown(
        self, values: Floats, base: Floats, X: object, rows: Floats
    ) -> tuple[Floats, Floats, Any, list[str]]:
        """Return values and bases without the axis of a single output, the rows, and the names."""
        if values.shape[-1] == 1:
            values, base = values[..., 0], base[0]
        schema = self.fitted_.schema
        seen = np.asarray(without_frame(X), dtype=object) if schema.categories else rows
        names = [str(column.name) for column in schema.columns]
        return values, np.broadcast_to(base, (len(rows), *np.shape(base))), seen, names


def _some_of(rows: Floats) -> Floats:
    """Rows in equal steps, as their own background."""
    n = len(rows)
    if n < _FEWEST_ROWS:
        raise InvalidData(
            f"X has {counted(n, 'row')}, too few to define the mean prediction; pass background=, "
            "such as 100 rows of the training data."
        )
    return rows[np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.intp)]
