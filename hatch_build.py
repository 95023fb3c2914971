"""Native code for wheels: ``HILBOOST_NATIVE="x86-64-v3 x86-64-v4" python -m build``."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeCode(BuildHookInterface):
    """Compiles everything for each level of processors that ``HILBOOST_NATIVE`` names."""

    levels = os.environ.get("HILBOOST_NATIVE", "").split()

    def dependencies(self) -> list[str]:
        """Return what the command ``hilboost warmup`` requires."""
        core = self.metadata.core
        return [*core.dependencies, *core.optional_dependencies["cli"]] if self.levels else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the compiled code of functions that Python calls, in ``hilboost/native``."""
        if not self.levels or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        for level in self.levels:
            places = {"PYTHONPATH": f"{self.root}/src", "NUMBA_CACHE_DIR": self._folder.name}
            target = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
            command = [sys.executable, "-m", "hilboost", "warmup"]
            subprocess.run(command, env={**os.environ, **places, **target}, check=True)
        native = Path(self._folder.name, "hilboost")
        for path in native.glob("*/part-*"):
            path.unlink()
        build_data["force_include"][str(native)] = "hilboost/native"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the compiled code."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
