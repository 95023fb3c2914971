"""Damaged model files and checkpoints, thousands of every kind: a clear error or a model.

Run ``python benchmarks/fuzz_model_files.py``.  The executions are shared among the kinds of model;
each kind has a process of its own, on one core.  With atheris
(``pip install '.[fuzz]'``) libFuzzer looks for inputs that reach new code in the readers; without,
inputs are drawn at random.  Both change files by what they are made of: JSON headers and texts at
any depth, names, types, shapes and places of arrays, single numbers, bytes, length.

A failure is any exception but ``InvalidModelFile`` on reading a model or a ``HilboostError`` on
going on from a checkpoint, on predicting, or from any other public method, more than 256 MiB of new
memory (a limit of the system), or more than 5 seconds.  Failures are printed, and kept in
``fuzz_failures/``.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from _common import ROOT, Record, markdown_table, study, version_of
from _mutation import mutated

sys.path.insert(0, str(ROOT))

try:
    import atheris
except ImportError:
    atheris = None

RUNS, SEED = 144_000, 20_261
MOST_BYTES, MOST_SECONDS = 2**28, 5
MOST_FAILURES = 20
CHECKPOINT = "checkpoint of "
X = np.sin(np.outer(np.arange(1, 25), [1.0, 2.3, 0.7]))


# Models


def seeds() -> dict[str, Any]:
    """A small fitted model of every kind."""
    from sklearn.linear_model import Ridge

    import hilboost as hb
    from hilboost.kernels import Linear, Matern, OnColumns
    from hilboost.losses import Quantile
    from hilboost.outputs import Hierarchy

    y = X[:, 0] + X[:, 1] ** 2
    classes = np.array(["low", "middle", "high"])[np.digitize(y, [0.2, 0.8])]
    kernel = 2.0 * Matern([1.0, 2.0, 0.5], 2.5) + OnColumns(Linear(0.5), [2, 0])
    machine = {"kernel": kernel, "regularization": 0.1, "random_state": 0}
    short = {"n_estimators": 2, "random_state": 0}
    full = hb.KernelBoostingRegressor(n_estimators=2, learning_rate=0.5, **machine).fit(X, y)
    models = {
        "trees": hb.BoostingClassifier(max_leaf_nodes=4, **short).fit(X, classes),
        "loss object": hb.BoostingRegressor(Quantile([0.2, 0.8]), **short),
        "full machine": full.calibrate(X, y),
        "nested machine": hb.SparseKernelClassifier(n_basis=10, **machine).fit(X, classes),
        "boosted ridge": hb.BoostingRegressor(learner=Ridge(), **short).fit(X, y),
    }
    models["loss object"].fit(X, y)
    rounded = np.round(X, 1)
    models["levels of categories"] = hb.BoostingRegressor(
        categorical_features=[1], target_encoding=False, min_samples_leaf=2, **short
    ).fit(rounded, y)
    committee = short | {"early_stopping": True, "cv_folds": 2, "max_leaf_nodes": 4}
    models["target encoding"] = hb.BoostingClassifier(
        categorical_features=[0, 1], target_encoding=True, **committee
    ).fit(rounded, classes)
    models["machine of categories"] = hb.KernelBoostingRegressor(
        categorical_features=[1], **short
    ).fit(rounded, y)
    two = np.column_stack([y, X[:, 2]])
    parents = {"cat": "pet", "dog": "pet", "elm": "tree"}
    outputs = {
        "linear": two,
        "gaussian": two,
        "label_set": [{"a"} if x < 0 else {"b", 3} for x in y],
        "ranking": np.where(X[:, :1] > 0, [[1, 2, 3, 4]], [[4, 2, 3, 1]]),
        "distribution": np.sort(two, axis=1),
        "composition": np.abs(X) / np.abs(X).sum(axis=1, keepdims=True),
        "positive_matrix": np.array([np.diag(x) for x in 2.5 + two]),
        "string": ["abcd" if x < 0 else "bcde" for x in y],
        "precomputed": X @ X.T,
        "hierarchy": ["cat" if x < 0 else "elm" for x in y],
    }
    for name, labels in outputs.items():
        space = Hierarchy(parents) if name == "hierarchy" else name
        models[f"forest, {name}"] = hb.OutputKernelForestRegressor(
            space, max_splits=3, **short
        ).fit(X, labels)
    for learner in ("ok3", "kernel", Ridge()):
        name = learner if isinstance(learner, str) else "ridge"
        models[f"boosting, {name}"] = hb.OutputKernelBoostingRegressor(
            "gaussian", learner=learner, **short
        ).fit(X, two)
    return models


# Trial


class Trial:
    """Reads and predicts, counts, and keeps what fails."""

    def __init__(self, name: str, folder: Path, report: Path, runs: int) -> None:
        self.path, self.report, self.runs = folder / "model", report, runs
        self.name, self.counts, self.slowest = name, Counter(), 0.0
        self.began = time.monotonic()

    def __call__(self, data: bytes) -> None:
        if self.counts["executions"] % 1000 == 0:
            limit_memory()
        self.counts["executions"] += 1
        self.path.write_bytes(data)
        began = time.monotonic()
        try:
            outcome = self.outcome()
        except Exception as error:
            outcome = "failures"
            self.keep(data, error)
        seconds = time.monotonic() - began
        self.slowest = max(self.slowest, seconds)
        if seconds > MOST_SECONDS:
            outcome = "failures"
            self.keep(data, TimeoutError(f"{seconds:.1f} s"))
        self.counts[outcome] += 1
        if self.counts["executions"] == self.runs:
            self.write()

    def outcome(self) -> str:
        """What became of the file."""
        from tests.callbacks.test_damaged_checkpoints import fit
        from tests.model.test_damaged_files import try_all_methods

        import hilboost
        from hilboost.callbacks import Checkpoint
        from hilboost.core.errors import HilboostError, InvalidModelFile

        interrupted = self.name.removeprefix(CHECKPOINT)
        try:
            if interrupted != self.name:
                model = fit(interrupted, Checkpoint(self.path))
            else:
                model = hilboost.load(self.path)
        except HilboostError as error:
            if interrupted == self.name and not isinstance(error, InvalidModelFile):
                raise
            return "refused"
        if model.n_features_in_ > 10**5:
            return "models, refused to predict"  # there are no such rows
        rows = X if model.n_features_in_ == 3 else np.ones((2, model.n_features_in_))
        try:
            found = model.predict(rows)
            if rows is X:
                try_all_methods(model)
            finite = np.isfinite(model.predict_raw(rows)).all()
            return "models, finite" if finite and len(found) == len(rows) else "models, not finite"
        except HilboostError:
            return "models, refused to predict"

    def keep(self, data: bytes, error: Exception) -> None:
        folder = Path("fuzz_failures")
        folder.mkdir(exist_ok=True)
        number = self.counts["failures"]
        if number < MOST_FAILURES:
            (folder / f"{self.name.replace(', ', '-').replace(' ', '-')}-{number}").write_bytes(
                data
            )
            print(f"FAILURE {self.name}: {type(error).__name__}: {error}", flush=True)

    def write(self) -> None:
        seconds = time.monotonic() - self.began
        facts = {"slowest_s": self.slowest, "seconds": seconds}
        self.report.write_text(json.dumps(dict(self.counts) | facts))


def limit_memory() -> None:
    """Whatever asks for more than so much in addition gets a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES, hard))


def fuzz(name: str, folder: Path, report: Path, runs: int) -> None:
    """All executions for one kind, in this process."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if atheris is None:
        import hilboost.estimators.files
    else:
        # Compiled loops cannot be instrumented, and are imported before.
        import hilboost.boosting
        import hilboost.learners.kernel_machine
        import hilboost.learners.tree

        with atheris.instrument_imports(include=["hilboost"]):
            import hilboost.estimators.files  # noqa: F401
    seed_file = folder / "seeds" / "seed"
    content = seed_file.read_bytes()
    trial = Trial(name, folder, report, runs)
    for _ in range(3):  # whatever is loaded or compiled on first use
        trial.path.write_bytes(content)
        assert trial.outcome() == "models, finite"
    if atheris is None:
        rng = random.Random(SEED)
        for _ in range(runs):
            data = content
            for _ in range(rng.randint(1, 3)):
                data = mutated(data, rng)
            trial(data)
        return

    def mutator(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.randrange(20) == 0:
            return bytes(atheris.Mutate(data, most))
        base = content if rng.randrange(2) == 0 else data
        return mutated(base, rng)[:most]

    flags = [f"-runs={runs}", f"-seed={SEED}", f"-timeout={MOST_SECONDS}", "-max_len=65536"]
    flags += ["-rss_limit_mb=4096", "-len_control=0", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *flags, str(folder / "seeds")], trial, custom_mutator=mutator)
    atheris.Fuzz()


@cache
def writers() -> dict[str, Callable[[Path], Any]]:
    """Functions that write an undamaged file of every kind."""
    from tests.callbacks.test_damaged_checkpoints import FITS, write

    models = {name: partial(model.save, training_data=True) for name, model in seeds().items()}
    return models | {CHECKPOINT + name: partial(write, name) for name in FITS}


def measure(kind: str, runs: int = RUNS) -> Record:
    """Fuzz a kind in a process of its own."""
    share = -(-runs // len(writers()))
    with tempfile.TemporaryDirectory(dir=memory_folder()) as temporary:
        folder = Path(temporary)
        (folder / "seeds").mkdir()
        seed, report = folder / "seeds" / "seed", folder / "report.json"
        writers()[kind](seed)
        known = {"bytes": seed.stat().st_size, "atheris": version_of("atheris")}
        command = [sys.executable, __file__, "--one", kind, str(folder), str(report), str(share)]
        done = subprocess.run(command, stdout=None, stderr=subprocess.PIPE, text=True, check=False)
        if not report.exists():
            print(done.stderr[-3000:], flush=True)
            return {**known, "executions": share, "failures": 1, "ended": done.returncode}
        known |= json.loads(report.read_text())
    if found := re.findall(r"cov: (\d+) ft: (\d+)", done.stderr):
        known |= {"edges_first": int(found[0][0]), "edges": int(found[-1][0])}
    return known


def memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def page(records: list[Record], facts: str) -> str:
    counts = ("executions", "refused", *OUTCOMES, "failures")
    total = {key: sum(record.get(key, 0) for record in records) for key in counts}
    rows = []
    for record in [*records, {"kind": "**all**", **total}]:
        odd = record.get(OUTCOMES[1], 0) + record.get(OUTCOMES[2], 0)
        edges = f"{record['edges_first']} to {record['edges']}" if "edges" in record else ""
        slowest = f"{1000 * record['slowest_s']:.0f}" if "slowest_s" in record else ""
        found = [f"{record.get(key, 0):,}" for key in ("executions", "refused", OUTCOMES[0])]
        tail = [f"{odd:,}", record.get("failures", 0), slowest, edges]
        rows.append([record["kind"], record.get("bytes", ""), *found, *tail])
    header = ["kind", "bytes", "executions", "rejected", "models", "non-finite or no predictions"]
    return (
        "# Damaged model files\n\n"
        "Each execution loads a model file with random damage, or continues a fit from a "
        "checkpoint with random damage. `hilboost.load` must either raise `InvalidModelFile` or "
        "return a model; the fit and every public method must return or raise a `HilboostError`. "
        "Any other exception, and exceeding the limits on memory or time, is a failure.\n\n"
        f"{facts}\n\n"
        f"Seed {SEED}, atheris {records[0]['atheris'] or 'not installed'}. Limits: "
        f"{MOST_BYTES // 2**20} MiB of additional memory, {MOST_SECONDS} s. *Edges* is the code "
        "coverage of hilboost, without learners and compiled loops, first with the undamaged file "
        "and then at the end.\n\n"
        f"{markdown_table([*header, 'failures', 'slowest, ms', 'edges'], rows)}"
    )


OUTCOMES = ("models, finite", "models, not finite", "models, refused to predict")

if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        fuzz(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]))
    else:
        cases, few = [{"kind": kind} for kind in writers()], partial(measure, runs=2_000)
        study("fuzz", cases, measure, page, about=__doc__, quick=few)
