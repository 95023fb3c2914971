"""Base class of all contract tests."""

from __future__ import annotations

from typing import Any


class Contract:
    """Base class of all contract tests.

    pytest collects subclasses whose names begin with ``Test``.  :meth:`run` runs the same checks
    without pytest.  To skip a check, set it to ``None`` in the subclass.
    """

    def make(self) -> Any:
        """Create the component under test; called by each check.

        Returns
        -------
        object

        Raises
        ------
        NotImplementedError
            If the subclass does not override this method.
        """
        raise NotImplementedError(f"{type(self).__name__}.make must return the object to test.")

    @classmethod
    def checks(cls) -> tuple[str, ...]:
        """Return the names of all checks; checks of base classes come first.

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
        """Run all checks until one fails.

        Raises
        ------
        AssertionError
            If a check fails.  The message names the class and the check, and describes the failure.
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
