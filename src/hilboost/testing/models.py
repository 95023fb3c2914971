"""What every fitted estimator promises, whichever parts it is made of."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier

import hilboost
from hilboost.core.errors import (
    HilboostError,
    IncompatibleParts,
    InvalidData,
    InvalidModelFile,
)
from hilboost.export.registry import export_formats
from hilboost.testing.assertions import (
    ensure,
    ensure_close,
    ensure_raises,
    ensure_same_labels,
)
from hilboost.testing.contract import Contract


class ModelContract(Contract):
    """Checks of an estimator with the part in it: copies, files, reports, exports.

    Attributes
    ----------
    saved : bool
        Whether the part can be written to a model file.  False for classes of a script, a notebook
        or a function, and for functions: their estimators cannot be saved.
    trusted : tuple of type
        Further classes that the model file names.
    """

    saved: bool = True
    trusted: tuple[type, ...] = ()

    def build(self, **parameters: Any) -> Any:
        """An unfitted estimator with the part in it.

        Parameters
        ----------
        **parameters
            Of the estimator.

        Returns
        -------
        estimator
        """
        raise NotImplementedError

    def table(self, n: int = 80) -> tuple[Any, Any]:
        """Inputs and labels to fit to.

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
        """Classes that a file of a model names, if they are not hilboost's.

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
        """``sklearn.base.clone`` and a second fit."""
        X, y = self.table()
        model = self.build().fit(X, y)
        copied = clone(model).fit(X, y)
        ensure_same_labels(
            predictions(copied, X), predictions(model, X), "A clone predicts something else."
        )

    def test_saving_and_loading(self) -> None:
        """Model files and pickles give the same predictions, and need trust."""
        X, y = self.table()
        model = self.build().fit(X, y)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.hilboost"
            if not self.saved:
                ensure_raises(
                    IncompatibleParts,
                    "",
                    lambda: hilboost.save(model, path),
                    "Saving a part that no file can name must be refused.",
                )
                return
            names = trusted_names([*self.own_classes(model), *self.trusted])
            hilboost.save(model, path)
            if names:
                ensure_raises(
                    InvalidModelFile,
                    "trusted",
                    lambda: hilboost.load(path),
                    "A file that names your own classes must not load without trusted=[...].",
                )
            loaded = hilboost.load(path, trusted=names)
        expected = predictions(model, X)
        ensure_same_labels(
            predictions(loaded, X), expected, "A loaded model predicts something else."
        )
        pickled = pickle.loads(pickle.dumps(model))
        ensure_same_labels(
            predictions(pickled, X), expected, "A pickled model predicts something else."
        )

    def test_reporting(self) -> None:
        """A report has scores, can be written as JSON, and is one page."""
        X, y = self.table()
        report = self.build().fit(X, y).report(X, y)
        json.dumps(report.facts, allow_nan=False)
        ensure(report.facts["scores"], "The report has no scores.")
        ensure("<html" in report.html, "The report is not a page.")

    def test_exporting(self) -> None:
        """Exports predict the same, or are refused in a sentence."""
        X, y = self.table()
        model = self.build().fit(X, y)
        for export in (hilboost.tree_table, *export_formats().values()):
            try:
                exported = export(model)
            except HilboostError as error:
                ensure(
                    str(error).endswith("."), f"{export.__name__} is refused without a sentence."
                )
                continue
            if export is hilboost.to_onnx:
                _compare_onnx(exported, model, X)


class BoostingContract(ModelContract):
    """Checks of boosting with the part in it: the loss falls, fits repeat, weights count.

    Attributes
    ----------
    takes_weights : bool
        Whether the learner takes sample weights.
    takes_samples : bool
        Whether the learner can learn from some of the rows; fits with ``subsample`` or
        ``early_stopping`` are refused otherwise.
    continues : bool
        Whether a warm start gives the model of one longer fit.  False for learners that keep
        something from stage to stage.
    monotone : bool
        Whether no stage may raise the training loss.
    """

    takes_weights: bool = True
    takes_samples: bool = True
    continues: bool = True
    monotone: bool = True
    _plain: ClassVar[dict[str, Any]] = {
        "n_estimators": 5,
        "early_stopping": False,
        "random_state": 0,
    }

    def test_training_loss_falls(self) -> None:
        """From stage to stage."""
        model = self.build(**self._plain).fit(*self.table())
        train = model.history_.train
        ensure(
            len(train) == 6 and len(model.model_.stages) == model.n_estimators_ == 5,
            f"The fit ended after {len(train) - 1} of 5 stages.",
        )
        ensure(np.isfinite(train).all(), f"The training loss is not finite: {train}.")
        ensure(train[-1] < train[0], f"The training loss does not fall: {train}.")
        if self.monotone:
            ensure(
                (np.diff(train) <= 1e-9 * abs(train[0])).all(), f"A stage raised the loss: {train}."
            )

    def test_predictions(self) -> None:
        """Finite, of the right shape, and the last of the staged ones."""
        X, y = self.table()
        model = self.build(**self._plain).fit(X, y)
        predicted = model.predict(X)
        staged = list(model.staged_predict(X))
        ensure(len(staged) == 5, f"There are {len(staged)} staged predictions of 5 stages.")
        ensure_same_labels(staged[-1], predicted, "The last staged prediction is another one.")
        if not is_classifier(model):
            ensure(np.isfinite(predicted).all(), "Predictions are not finite.")
            linked = model.loss_.inverse_link(model.model_.predict_raw(X))
            expected = linked[:, 0] if linked.shape[1] == 1 else linked
            ensure_close(predicted, expected, "predict is not inverse_link of the raw scores.")
            return
        ensure(predicted.shape == (len(X),), f"predict returned the shape {predicted.shape}.")
        probabilities = model.predict_proba(X)
        ensure_close(
            model.classes_[probabilities.argmax(axis=1)],
            predicted,
            "The predicted class is not the most probable one.",
        )
        *_, last = model.staged_predict_proba(X)
        ensure_close(last, probabilities, "The last staged probabilities are others.")
        scores = model.decision_function(X)
        raw = model.model_.predict_raw(X)
        expected = (len(X),) if raw.shape[1] == 1 else probabilities.shape
        ensure(scores.shape == expected, f"decision_function returned the shape {scores.shape}.")

    def test_fits_repeat_and_warm_starts_continue(self) -> None:
        """Bit for bit, with rows drawn at random."""
        X, y = self.table()
        drawn = self._plain | ({"subsample": 0.7} if self.takes_samples else {})
        whole = self.build(**drawn).fit(X, y)
        others = {"second fit": clone(whole).fit(X, y)}
        if self.continues:
            halves = self.build(**drawn | {"n_estimators": 2, "warm_start": True}).fit(X, y)
            others["warm start"] = halves.set_params(n_estimators=5).fit(X, y)
        for what, other in others.items():
            ensure_close(other.predict(X), whole.predict(X), f"A {what} predicts something else.")
            ensure_close(
                other.history_.train, whole.history_.train, f"A {what} has other training losses."
            )

    def test_weights_count(self) -> None:
        """Sample weights change the model, or are refused."""
        X, y = self.table()
        weight = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
        model = self.build(**self._plain)
        if not self.takes_weights:
            ensure_raises(
                InvalidData,
                "does not support sample weights.*use a learner",
                lambda: model.fit(X, y, sample_weight=weight),
                "Weights that the learner does not take must be refused.",
            )
            return
        plain = clone(model).fit(X, y).model_.predict_raw(X)
        weighted = model.fit(X, y, sample_weight=weight).model_.predict_raw(X)
        ensure(not np.array_equal(weighted, plain), "Sample weights do not change the model.")

    def test_early_stopping_keeps_the_best_stage(self) -> None:
        """By held-out rows and by cross-validation."""
        X, y = self.table(120)
        stopping = {"early_stopping": True, "n_estimators": 12, "n_iter_no_change": 3}
        if not self.takes_samples:
            ensure_raises(
                IncompatibleParts,
                "",
                lambda: self.build(**self._plain | stopping).fit(X, y),
                "Early stopping must be refused, as the learner cannot leave rows out.",
            )
            return
        for folds in (1, 3):
            model = self.build(
                **self._plain | stopping, cv_folds=folds, validation_fraction=0.3
            ).fit(X, y)
            losses = model.history_.validation
            ensure(len(losses) == len(model.history_.train), "The histories differ in length.")
            best = int(np.argmin(losses))
            ensure(
                model.n_estimators_ == best == len(model.model_.stages),
                f"{model.n_estimators_} stages were kept; the best number is {best}.",
            )


def predictions(model: Any, X: Any) -> Any:
    """Probabilities of a classifier, predictions of other estimators.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array-like (n, d)

    Returns
    -------
    array or list
    """
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


def trusted_names(classes: Iterable[type]) -> list[str]:
    """Names under which a model file has classes that are not hilboost's or scikit-learn's.

    Parameters
    ----------
    classes : iterable of type

    Returns
    -------
    list of str
        As ``hilboost.load`` takes them.
    """
    own = [
        cls for cls in classes if cls.__module__.partition(".")[0] not in ("hilboost", "sklearn")
    ]
    return list(dict.fromkeys(f"{cls.__module__}:{cls.__qualname__}" for cls in own))


def _compare_onnx(exported: Any, model: Any, X: Any) -> None:
    """With the runtime, where it is installed."""
    if find_spec("onnxruntime") is None:
        return
    from onnxruntime import InferenceSession

    session = InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    output = "probabilities" if is_classifier(model) else "prediction"
    (found,) = session.run([output], {"X": np.asarray(X, dtype=np.float64)})
    ensure_close(
        found,
        predictions(model, X),
        "The ONNX model predicts something else.",
        rtol=1e-6,
        atol=1e-8,
    )
