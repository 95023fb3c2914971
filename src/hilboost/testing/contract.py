"""What the contract tests of all kinds of parts share."""

from __future__ import annotations

from typing import Any


class Contract:
    """Base class of all contract tests.

    A subclass whose name begins with ``Test`` is collected by pytest.  :meth:`run` runs the same
    checks without pytest.  Set a check to ``None`` in a subclass to leave it out.
    """

    def make(self) -> Any:
        """The part under test; called anew by every check.

        Returns
        -------
        object

        Raises
        ------
        NotImplementedError
            The subclass does not say.
        """
        raise NotImplementedError(f"{type(self).__name__}.make must return the part to test.")

    @classmethod
    def checks(cls) -> tuple[str, ...]:
        """Names of all checks, those of base classes first.

        Returns
        -------
        tuple of str
        """
        names = {
            name: None
            for base in reversed(cls.__mro__)
            for name in vars(base)
            if name.startswith("test_")
        }
        return tuple(name for name in names if callable(getattr(cls, name)))

    def run(self) -> None:
        """Run all checks; the first one that fails ends the run.

        Raises
        ------
        AssertionError
            The message names the part and the check, and says what is wrong.
        """
        for name in self.checks():
            try:
                getattr(self, name)()
            except Exception as error:
                said = str(error)
                if not isinstance(error, AssertionError):
                    said = f"{type(error).__name__}: {error}"
                raise AssertionError(
                    f"{type(self.make()).__name__} fails {name}: {said}"
                ) from error
