"""Contract tests of estimators with a component under test."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import hilboost
from hilboost.core.errors import HilboostError, IncompatibleParts, InvalidData, InvalidModelFile
from hilboost.export.registry import export_formats
from hilboost.losses.registry import gives_probabilities
from hilboost.testing.contract import (
    Contract,
    ensure,
    ensure_close,
    ensure_raises,
    ensure_same_labels,
)


class ModelContract(Contract):
    """Checks of an estimator with the component: clones, files, reports and exports.

    Attributes
    ----------
    saved : bool
        Whether model files support the component.  Set it to ``False`` for functions, and for
        classes defined in a script, a notebook or a function, to which model files cannot refer.
    trusted : tuple of type
        Additional custom classes in model files.
    """

    saved: bool = True
    trusted: tuple[type, ...] = ()

    def build(self, **parameters: Any) -> Any:
        """Create an unfitted estimator with the component.

        Parameters
        ----------
        **parameters
            Parameters of the estimator.

        Returns
        -------
        estimator
        """
        raise NotImplementedError

    def table(self, n: int = 80) -> tuple[Any, Any]:
        """Draw inputs and labels for a fit.

        Parameters
        ----------
        n : int
            Number of rows.

        Returns
        -------
        tuple
            ``X`` (n, d) and ``y``.
        """
        raise NotImplementedError

    def own_classes(self, model: Any) -> Iterable[type]:
        """Return the classes in a model file that may be custom classes.

        Parameters
        ----------
        model : estimator
            Fitted.

        Returns
        -------
        iterable of type
        """
        return (type(self.make()),)

    def test_a_clone_gives_the_same_predictions(self) -> None:
        """A clone gives the same predictions after a fit to the same data."""
        X, y = self.table()
        model = self.build().fit(X, y)
        copied = clone(model).fit(X, y)
        said = "A clone must give equal predictions."
        ensure_same_labels(predictions(copied, X), predictions(model, X), said)

    def test_saving_and_loading(self) -> None:
        """Loaded and unpickled models give the same predictions; custom classes require trust."""
        X, y = self.table()
        model = self.build().fit(X, y)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.hilboost"
            if not self.saved:
                ensure_raises(
                    IncompatibleParts,
                    "",
                    lambda: hilboost.save(model, path),
                    "save must raise an error, because model files cannot refer to the component.",
                )
                return
            names = trusted_names([*self.own_classes(model), *self.trusted])
            hilboost.save(model, path, training_data=True)
            if names:
                ensure_raises(
                    InvalidModelFile,
                    "trusted",
                    lambda: hilboost.load(path),
                    "load must raise an error for custom classes without trusted=[...].",
                )
            loaded = hilboost.load(path, trusted=names)
        expected = predictions(model, X)
        said = "A loaded model must give equal predictions."
        ensure_same_labels(predictions(loaded, X), expected, said)
        pickled = pickle.loads(pickle.dumps(model))
        said = "An unpickled model must give equal predictions."
        ensure_same_labels(predictions(pickled, X), expected, said)

    def test_reporting(self) -> None:
        """A report has scores, can be serialized to JSON, and is an HTML page."""
        X, y = self.table()
        report = self.build().fit(X, y).report(X, y)
        json.dumps(report.facts, allow_nan=False)
        ensure(report.facts["scores"], "The report must have scores.")
        ensure("<html" in report.html, "The report must be an HTML page.")

    def test_exporting(self) -> None:
        """Exported models give the same predictions, or the export raises a clear error."""
        X, y = self.table()
        model = self.build().fit(X, y)
        with TemporaryDirectory() as folder:
            for name, export in _exports(Path(folder)):
                try:
                    exported = export(model)
                except HilboostError as error:
                    said = f"The error of {name} must be a sentence; got {str(error)!r}."
                    ensure(str(error).endswith("."), said)
                    continue
                if name == "to_onnx":
                    _compare_onnx(exported, model, X)

    def test_exports_need_a_fit(self) -> None:
        """Exports reject models that are not fitted."""
        for name, export in _exports(Path()):
            found: Exception | None = None
            try:
                export(self.build())
            except Exception as error:
                found = error
            said = f"{name} must call check_is_fitted before it reads the model; got {found!r}."
            ensure(isinstance(found, HilboostError | NotFittedError), said)


def _exports(folder: Path) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield the functions that export a model, by name; exports to formats write to a file."""
    yield "tree_table", hilboost.tree_table
    for export in export_formats().values():
        yield export.__name__, partial(export, path=folder / export.__name__)


class BoostingContract(ModelContract):
    """Checks of boosting with the component: training loss, reproducibility, weights.

    Attributes
    ----------
    takes_weights : bool
        Whether the learner supports sample weights.
    takes_samples : bool
        Whether the learner can be fitted to a sample of the rows.  Otherwise, fits with
        ``subsample`` must raise an error, and the learner must declare ``takes_samples = False``.
    continues : bool
        Whether a warm start gives the same model as a single longer fit.  Set it to ``False`` for
        learners that keep state between stages and do not define ``snapshot`` and ``restore``.
    monotone : bool
        Whether no stage may increase the training loss.
    """

    takes_weights: bool = True
    takes_samples: bool = True
    continues: bool = True
    monotone: bool = True
    _plain: ClassVar[Any] = {"n_estimators": 5, "early_stopping": False, "random_state": 0}

    def test_training_loss_falls(self) -> None:
        """The training loss decreases, in each stage if :attr:`monotone` is set."""
        model = self.build(**self._plain).fit(*self.table())
        train = model.history_.train
        said = f"The fit must have 5 stages; it has {len(train) - 1}."
        ensure(len(train) == 6 and len(model.model_.stages) == model.n_estimators_ == 5, said)
        ensure(np.isfinite(train).all(), f"The training loss must be finite; got {train}.")
        ensure(train[-1] < train[0], f"The training loss must decrease; got {train}.")
        if self.monotone:
            said = f"No stage may increase the training loss; got {train}."
            ensure((np.diff(train) <= 1e-9 * abs(train[0])).all(), said)

    def test_predictions(self) -> None:
        """Predictions are finite, have the right shape, and equal the last staged predictions."""
        X, y = self.table()
        model = self.build(**self._plain).fit(X, y)
        predicted = model.predict(X)
        staged = list(model.staged_predict(X))
        ensure(len(staged) == 5, f"5 stages must give 5 staged predictions; got {len(staged)}.")
        said = "The last staged predictions must equal the predictions."
        ensure_same_labels(staged[-1], predicted, said)
        if not is_classifier(model):
            ensure(np.isfinite(predicted).all(), "Predictions must be finite.")
            linked = model.loss_.inverse_link(model.model_.predict_raw(X))
            expected = linked[:, 0] if linked.shape[1] == 1 else linked
            ensure_close(predicted, expected, "predict must return inverse_link of the raw scores.")
            return
        said = f"predict must return shape ({len(X)},); got {predicted.shape}."
        ensure(predicted.shape == (len(X),), said)
        by_class = predictions(model, X)
        said = "The predicted class must be the most probable one."
        ensure_close(model.classes_[by_class.argmax(axis=1)], predicted, said)
        if gives_probabilities(model.loss_):
            *_, last = model.staged_predict_proba(X)
            said = "The last staged probabilities must equal the probabilities."
            ensure_close(last, by_class, said)
        scores = model.decision_function(X)
        raw = model.model_.predict_raw(X)
        expected = (len(X),) if raw.shape[1] == 1 else by_class.shape
        said = f"decision_function must return shape {expected}; got {scores.shape}."
        ensure(scores.shape == expected, said)

    def test_fits_repeat_and_warm_starts_continue(self) -> None:
        """A second fit and a warm start give the same model, bit for bit, with row sampling."""
        X, y = self.table()
        drawn = self._plain | ({"subsample": 0.7} if self.takes_samples else {})
        whole = self.build(**drawn).fit(X, y)
        others = {"second fit": clone(whole).fit(X, y)}
        if self.continues:
            halves = self.build(**drawn | {"n_estimators": 2, "warm_start": True}).fit(X, y)
            others["warm start"] = halves.set_params(n_estimators=5).fit(X, y)
        for what, other in others.items():
            said = f"A {what} must give equal predictions."
            ensure_close(other.predict(X), whole.predict(X), said)
            said = f"A {what} must have equal training losses."
            ensure_close(other.history_.train, whole.history_.train, said)

    def test_weights_count(self) -> None:
        """Sample weights change the model, or are rejected."""
        X, y = self.table()
        weight = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
        model = self.build(**self._plain)
        if not self.takes_weights:
            ensure_raises(
                InvalidData,
                "does not support sample weights.*use a learner",
                lambda: model.fit(X, y, sample_weight=weight),
                "A learner that does not support sample weights must reject them.",
            )
            return
        plain = clone(model).fit(X, y).model_.predict_raw(X)
        weighted = model.fit(X, y, sample_weight=weight).model_.predict_raw(X)
        ensure(not np.array_equal(weighted, plain), "Sample weights must change the model.")

    def test_early_stopping_keeps_the_best_stage(self) -> None:
        """Early stopping keeps the best stage, with held-out rows and with cross-validation."""
        X, y = self.table(120)
        stopping = {"early_stopping": True, "n_estimators": 12, "n_iter_no_change": 3}
        for folds in (1, 3):
            model = self.build(
                **self._plain | stopping, cv_folds=folds, validation_fraction=0.3
            ).fit(X, y)
            losses = model.history_.validation
            said = "Both histories must have equal lengths."
            ensure(len(losses) == len(model.history_.train), said)
            best = int(np.argmin(losses))
            ensure(
                model.n_estimators_ == best == len(model.model_.stages),
                f"The model must keep {best} stages, up to the lowest validation loss; it has "
                f"{model.n_estimators_}.",
            )


def predictions(model: Any, X: object) -> Any:
    """Return the probabilities or scores of a classifier, or the predictions of another estimator.

    ``model``: fitted. ``X``: array-like (n, d).
    """
    if not is_classifier(model):
        return model.predict(X)
    if gives_probabilities(model.loss_):
        return model.predict_proba(X)
    return model.loss_.inverse_link(model.predict_raw(X))


def trusted_names(classes: Iterable[type]) -> list[str]:
    """Return the names of custom classes in a model file.

    ``classes``: classes of hilboost and scikit-learn are ignored.

    Returns list of str: names for the parameter ``trusted`` of ``hilboost.load``.
    """
    known = ("hilboost", "sklearn")
    own = [cls for cls in classes if cls.__module__.partition(".")[0] not in known]
    return list(dict.fromkeys(f"{cls.__module__}:{cls.__qualname__}" for cls in own))


def _compare_onnx(exported: Any, model: Any, X: object) -> None:
    """Compare predictions with onnxruntime, if it is installed."""
    if find_spec("onnxruntime") is None:
        return
    from onnxruntime import InferenceSession

    session = InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    output, expected = "prediction", predictions(model, X)
    if is_classifier(model):
        output = "probabilities" if gives_probabilities(model.loss_) else "scores"
    elif model.loss_.has_distribution:
        output = "parameters"
        expected = np.column_stack([*model.predict_distribution(X).parameters.values()])
    (found,) = session.run([output], {"X": np.asarray(X, dtype=np.float64)})
    said = "The ONNX model must give equal predictions."
    ensure_close(found, expected, said, 1e-6, 1e-8)
