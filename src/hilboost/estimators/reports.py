"""Reports on fitted estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hilboost.estimators.signatures import public_methods


@public_methods
class ReportMixin:
    """Mixin for reports on the fitted model."""

    def report(
        self,
        X: Any,
        y: Any,
        path: str | Path | None = None,
        title: str | None = None,
        *,
        positive_class: Any = None,
        sample_weight: Any = None,
        X_train: Any = None,
        groups: Any = None,
        strata: Any = None,
        entry: Any = None,
        offset: Any = None,
    ) -> Any:
        """Create a report on the fitted model: errors, feature importances and parameters.

        Tables are sorted by a click on a heading, and charts show their values next to the pointer.

        Parameters
        ----------
        X : array-like (n, d)
            Rows that were not used to fit the model.
        y : array-like (n,), (n, c), or sequence of n labels
            True labels of these rows.
        path : str or Path, optional
            Path of a self-contained HTML file to write.
        title : str, optional
        positive_class : label, optional
            The class, of two, that calibration, curves, thresholds and partial dependence are
            about; by default the second of ``classes_``.
        sample_weight : array-like (n,), optional
            Weights of the rows in scores, means and curves.
        X_train : array-like (m, d), optional
            Rows of the training data.  The report shows how the distributions of columns and
            predictions differ, and counts the rows of ``X`` that also occur in ``X_train``.
        groups : array-like (n,), optional
            Label of the group of each row of a ranking.
        strata, entry : array-like (n,), optional
            Strata and entry times of survival times, as in ``fit``.
        offset : array-like (n,) or (n, r), optional
            Known part of the predictions, as in ``fit``.  Contributions, partial dependence and
            drift refer to the model without offsets.

        Returns
        -------
        hilboost.report.page.Report
            Renders itself in a notebook.  Its attributes are ``facts`` and ``html``.

        Raises
        ------
        InvalidData, InvalidParameter
            ``y`` or ``X_train`` does not match ``X``, ``positive_class`` is not one of two
            classes, the model has no groups or strata or supports no weights, or the file ``path``
            cannot be created.
        MissingPackage
            The packages of the extra ``report`` are not installed.

        Notes
        -----
        A report takes about as long as predicting 200,000 rows, mostly for the permutation
        importances.
        """
        from hilboost.report import report

        more = {"groups": groups, "strata": strata, "entry": entry, "offset": offset}
        more |= {"sample_weight": sample_weight, "X_train": X_train}
        return report(self, X, y, path, title=title, positive_class=positive_class, **more)

    def report_facts(
        self,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        strata: Any = None,
        entry: Any = None,
        offset: Any = None,
    ) -> dict[str, Any]:
        """Return the facts of :meth:`report` as a JSON-serializable dict.

        Parameters
        ----------
        X : array-like (n, d)
        y : array-like (n,), (n, c), or sequence of n labels
        groups, strata, entry, offset : array-like, optional
            See :meth:`report`.

        Returns
        -------
        dict
        """
        from hilboost.report import facts

        return facts(self, X, y, groups=groups, strata=strata, entry=entry, offset=offset)
