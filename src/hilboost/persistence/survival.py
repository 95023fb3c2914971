"""Survival functions in model files.

Header: ``survival`` with ``distribution``, ``scale`` and, unless it is 0, ``location``; ``strata``
and ``strata_dtype`` if there are strata; ``ends`` and ``n_causes`` for discrete hazards.  Arrays:
``survival.times`` (u,) and, for proportional hazards, ``survival.hazard`` (s, u).
"""

from __future__ import annotations

import numpy as np

from hilboost.losses._survival import DISTRIBUTIONS
from hilboost.losses.discrete_hazard import DiscreteHazard
from hilboost.model.survival import SurvivalCodec, SurvivalCurves
from hilboost.persistence.require import Arrays, positive, require, require_finite, require_kind
from hilboost.persistence.stored import Header
from hilboost.persistence.values import label_dtype, read_labels

_TIMES, _HAZARD = "survival.times", "survival.hazard"


def to_file(codec: SurvivalCodec, curves: SurvivalCurves) -> tuple[Header, Arrays]:
    """Convert to fields and arrays."""
    fields: Header = {"distribution": curves.distribution, "scale": curves.scale}
    if curves.location:
        fields["location"] = curves.location
    labels = codec.strata_labels
    if labels is not None:
        fields |= {"strata": labels.tolist(), "strata_dtype": label_dtype(labels, "stratum").str}
    if codec.ends is not None:
        fields |= {"ends": codec.ends.tolist(), "n_causes": codec.n_causes}
    arrays = {_TIMES: np.ascontiguousarray(curves.times)}
    if curves.hazard is not None:
        arrays[_HAZARD] = np.ascontiguousarray(curves.hazard)
    return {"survival": fields}, arrays


def codec_from_file(fields: Header) -> SurvivalCodec:
    """Read the labels of the strata, or the intervals of discrete hazards."""
    require_kind(fields, dict, "survival")
    if "ends" in fields:
        ends, n_causes = np.array(fields["ends"], dtype=np.float64), fields["n_causes"]
        require(ends.ndim == 1 and len(ends) > 0 and bool(np.isfinite(ends).all()), "ends")
        require(bool((np.diff(ends, prepend=0.0) > 0).all()), "ends")
        require(type(n_causes) is int and n_causes > 0, "n_causes")
        return SurvivalCodec(None, n_causes, ends, intervals=False)
    intervals = fields["distribution"] is not None
    if "strata" not in fields:
        return SurvivalCodec(intervals=intervals)
    labels = read_labels(fields["strata"], fields["strata_dtype"], "strata")
    require(bool((labels[1:] > labels[:-1]).all()), "strata")
    return SurvivalCodec(labels, intervals=intervals)


def curves_from_file(header: Header, arrays: Arrays, codec: SurvivalCodec) -> SurvivalCurves:
    """Read what turns risks into survival functions."""
    fields, times = header["survival"], require_finite(arrays, _TIMES)
    require(bool((np.diff(times) > 0).all()) and len(times) > 0, _TIMES)
    if codec.ends is not None:
        return SurvivalCurves(times, discrete=DiscreteHazard(codec.ends, codec.n_causes))
    if fields["distribution"] is not None:
        require(fields["distribution"] in DISTRIBUTIONS, "distribution")
        scale = positive(fields["scale"], "scale")
        location = float(fields.get("location", 0.0))
        require(bool(np.isfinite(location)), "location")
        return SurvivalCurves(times, None, fields["distribution"], scale, location)
    hazard = require_finite(arrays, _HAZARD, 2)
    labels = codec.strata_labels
    require(hazard.shape == (1 if labels is None else len(labels), len(times)), _HAZARD)
    require(bool((hazard >= 0).all() and (np.diff(hazard, axis=1) >= 0).all()), _HAZARD)
    return SurvivalCurves(times, hazard)
