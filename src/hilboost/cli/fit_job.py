"""The options of ``hilboost fit``, which are also the keys of a configuration file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hilboost.cli.dialect import Dialect
from hilboost.cli.task import TaskName


@dataclass(frozen=True)
class FitJob:
    """The options of ``hilboost fit``; ``None`` selects the library's default."""

    table: Path | None = None
    target: str | None = None
    out: Path | None = None
    task: Literal["auto"] | TaskName = "auto"
    family: Literal["tree", "kernel"] = "tree"
    loss: str | None = None
    quantile: tuple[float, ...] = ()
    n_estimators: int | None = None
    learning_rate: float | None = None
    random_state: int | None = None
    threads: int | None = None
    weights: str | None = None
    group: str | None = None
    event: str | None = None
    offset: str | None = None
    ignore: tuple[str, ...] = ()
    valid: tuple[Path, ...] = ()
    metric: tuple[str, ...] = ()
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    dates: Literal["ignore", "expand", "text"] = "ignore"
    date_order: Literal["dmy", "mdy"] | None = None
    missing: tuple[str, ...] = ()
    coerce: bool = False
    drop_missing_target: bool = False
    time_budget: float | None = None
    stream: bool = False
    dask: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        """Form of the tables."""
        return Dialect(
            self.sep, self.decimal, self.encoding, self.date_order, self.missing, self.coerce
        )
