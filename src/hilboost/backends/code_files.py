"""Compiled code on disk, one file for each function, signature, processor, Python and Numba.

Folders, in the order in which they are asked::

    $NUMBA_CACHE_DIR/hilboost   or, without this variable, the user's folder for caches, then the
                                package's __pycache__
    hilboost/native             comes with wheels, and nothing is written to it
    `-- 5e0c23f0bb3f27ac        the content of all sources with compiled functions
        `-- backends.loss_gradients.logistic_gradients-0f4c1a9be6e3d7c2.code

Names depend on contents alone, not on times or paths of sources, so that code stays valid when the
same version is installed again or elsewhere. Code for a level of processors (x86-64-v3) is used on
every processor that has all features of the level.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, ClassVar
from uuid import uuid4

import numba
from llvmlite import binding
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import compile_result
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.misc.appdirs import AppDirs

from hilboost.backends.numba_linker import PartLibrary
from hilboost.core.errors import CacheWarning

try:
    import fcntl
except ImportError:  # not available on Windows, where processes compile the same function at once
    fcntl = None  # type: ignore[assignment]

_PACKAGE = Path(__file__).parents[1]
_NATIVE = _PACKAGE / "native"
_APART = "cuda"  # a folder of functions that no others call
_OF_RUNTIME = b"NRT_"  # in the names of functions that count references to arrays
_KEPT = 8  # folders of other sources, such as earlier versions
_PATIENCE, _PAUSE = 60.0, 0.02  # seconds, for another process that compiles the same function
_V2 = frozenset({"cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2, "generic": frozenset()}
"""LLVM's names of processor levels, best first, and the features that each requires."""

_warned: set[str] = set()


def _warn(reason: str) -> None:
    """Warn once per process."""
    if _warned:
        return
    warnings.warn(
        f"Compiled code cannot be cached ({reason}), so every process compiles it again, which "
        "takes about a minute. Set the environment variable NUMBA_CACHE_DIR to a folder that you "
        "can write to.",
        CacheWarning,
        stacklevel=2,
    )
    _warned.add(reason)  # not where warnings are errors


def _digest(paths: Iterable[Path]) -> str:
    digest = sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)} ".encode() + content)
    return digest.hexdigest()[:16]


@cache
def digest_of_sources() -> str:
    """Content of all files with compiled functions, because a function contains others."""
    folders = "backends", "engine/ops"
    found = [path for folder in folders for path in (_PACKAGE / folder).rglob("*.py")]
    paths = sorted(path for path in found if path.parent.name != _APART)
    return _digest(paths or [Path(sys.executable)])  # an application in one file


@cache
def _digest_of_file(path: str) -> str:
    file = Path(path)
    if file.parent.name == _APART:
        return _digest(sorted(file.parent.glob("*.py")))
    return _digest([file]) if file.exists() else ""


def writable_places() -> list[Path]:
    """Folders to keep code in, the first that can be written to."""
    if config.CACHE_DIR:
        return [Path(config.CACHE_DIR) / "hilboost"]
    of_user = Path(AppDirs("hilboost", False).user_cache_dir)
    return [*([of_user] if of_user.is_absolute() else []), _PACKAGE / "__pycache__" / "hilboost"]


def _levels(features: str) -> list[str]:
    """Levels whose features are all among these, which LLVM has written."""
    enabled = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    return [level for level, required in LEVELS.items() if enabled and required <= enabled]


def _folder_in(place: Path) -> Path:
    """Return the folder of these sources, which replaces those of the oldest ones."""
    folder = place / digest_of_sources()
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            for old in sorted(place.iterdir(), key=os.path.getmtime)[: -_KEPT - 1]:
                shutil.rmtree(old, ignore_errors=True)
    return folder


def _write(place: Path, name: str, content: bytes) -> None:
    folder = _folder_in(place)
    temporary = folder / f"{uuid4().hex}.tmp"
    try:
        temporary.write_bytes(content)
        os.replace(temporary, folder / name)
    finally:
        temporary.unlink(missing_ok=True)


def _keep(name: str, content: bytes) -> Path | None:
    """Write to the first folder that can be written to; if there is none, warn."""
    reason = ""
    for place in writable_places():
        try:
            _write(place, name, content)
        except OSError as error:
            reason = str(error)
        else:
            return _folder_in(place) / name
    _warn(reason)
    return None


def try_to_write() -> None:
    """Warn if compiled code cannot be kept anywhere."""
    written = _keep(uuid4().hex, b"")
    if written is not None:
        written.unlink(missing_ok=True)


class _Turn:
    """The right to compile a function, which one process has at a time: a lock on a file."""

    def __init__(self) -> None:
        self._lock: IO[bytes] | None = None

    def take(self, name: str) -> None:
        """Wait until no other process compiles the function."""
        for place in writable_places() if fcntl is not None else ():
            with suppress(OSError):
                self._lock = (_folder_in(place) / f"{name}.lock").open("wb")
                break
        end = time.monotonic() + _PATIENCE
        while self._lock is not None and time.monotonic() < end:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_PAUSE)
            except OSError:  # a file system without locks
                break

    def leave(self) -> None:
        """Let others compile the function, or read it."""
        if self._lock is not None:
            with suppress(OSError):
                os.unlink(self._lock.name)
            self._lock.close()
            self._lock = None


class CodeFiles(NullCache):
    """The files of a function that Python calls."""

    prefix = ""
    accepts_levels: ClassVar[bool] = True
    """Whether code for a level of processors is used where there is none for this processor."""
    lower_levels: ClassVar[set[str]] = set()
    """Levels whose code this process has loaded although the processor has a higher one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._turn = _Turn()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function, or ``None`` if no place has an intact file.

        The caller then compiles it, which no other process does at the same time.
        """
        arguments, _ = normalize_signature(sig)
        found = self._found(arguments, target_context)
        if found is None:
            self._turn.take(self._name(arguments, target_context.codegen().magic_tuple()))
            found = self._found(arguments, target_context)
            if found is not None:
                self.leave()
        return found

    def leave(self) -> None:
        """End a compilation, which may have failed."""
        self._turn.leave()

    def _found(self, arguments: tuple[Any, ...], target_context: Any) -> Any:
        system, processor, features = target_context.codegen().magic_tuple()
        found = self._intact(arguments, (system, processor, features))
        levels = _levels(features) if self.accepts_levels else []
        for level in levels if found is None else ():
            found = self._intact(arguments, (system, level, ""))
            if found is not None:
                self.lower_levels.update({level} - {levels[0]})
                break
        return None if found is None else self._rebuilt(target_context, found)

    def _intact(self, arguments: tuple[Any, ...], target: tuple[str, str, str]) -> Any:
        """Return the content of the first intact file for a system, processor and features."""
        for place in [*writable_places(), _NATIVE]:
            found = self._read(place / digest_of_sources() / self._name(arguments, target))
            # The names of two types may be equal.
            if found is not None and tuple(found[-1].args) == arguments:
                return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled function; what cannot be written costs a warning and time."""
        try:
            self._save(sig, data)
        finally:
            self.leave()

    def _save(self, sig: Any, data: Any) -> None:
        if data.library.has_dynamic_globals:  # addresses in this process
            return
        arguments, _ = normalize_signature(sig)
        name = self._name(arguments, data.codegen.magic_tuple())
        data.fndesc.typemap = data.fndesc.calltypes = None  # of use to the compiler alone
        environments = data._find_referenced_environments()
        parts = self._code(data.library), data.fndesc, data.environment, environments
        content = dumps((*parts, data.signature))
        _keep(name, sha256(content).digest() + content)

    def _name(self, arguments: tuple[Any, ...], target: tuple[str, str, str]) -> str:
        function = self._function
        file = _digest_of_file(function.__code__.co_filename)
        versions = numba.__version__, sys.implementation.cache_tag
        text = repr((file, versions, target, [str(one) for one in arguments]))
        full_name = f"{function.__module__}.{function.__qualname__}".removeprefix("hilboost.")
        name = full_name.replace("<", "").replace(">", "")
        return f"{self.prefix}{name}-{sha256(text.encode()).hexdigest()[:16]}.code"

    @staticmethod
    def _read(path: Path) -> Any:
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if sha256(content[32:]).digest() != content[:32]:
            return None
        return pickle.loads(content[32:])

    def _rebuilt(self, target_context: Any, found: tuple[Any, ...]) -> Any:
        code, fndesc, environment, environments, signature = found
        # All else that Numba sets up for a compiler would take longer than to read all code.
        if _OF_RUNTIME in code[1]:
            rtsys.initialize(target_context)
        library = self._library(target_context.codegen(), fndesc, *code)
        result = compile_result(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=target_context.get_executable(library, fndesc, environment),
            fndesc=fndesc,
            type_annotation="",
            signature=signature,
            objectmode=False,
            lifted=(),
            referenced_envs=environments,
        )
        for one in environments:
            library.codegen.set_env(one.env_name, one)
        return result

    @staticmethod
    def _code(library: Any) -> tuple[str, bytes]:
        """Return the machine code alone: nothing is linked with the function."""
        name, _, (code, _) = library.serialize_using_object_code()
        return name, code

    @staticmethod
    def _library(codegen: Any, fndesc: Any, name: str, code: bytes) -> Any:
        # Stands for the bitcode, whose names tell what the machine code defines.
        defined = fndesc.llvm_func_name, fndesc.llvm_cpython_wrapper_name
        names = "".join(f'@"{symbol}" = global i8 0\n' for symbol in defined)
        bitcode = binding.parse_assembly(names).as_bitcode()
        return codegen.unserialize_library((name, "object", (code, bitcode)))


class PartFiles(CodeFiles):
    """The files of a function that only compiled functions call."""

    prefix = "part-"

    @staticmethod
    def _code(library: Any) -> tuple[str, bytes]:
        return library.serialize_using_object_code()

    @staticmethod
    def _library(codegen: Any, fndesc: Any, name: str, code: bytes) -> Any:
        return PartLibrary.of_bitcode(codegen, name, code)
