"""``python -m hilboost``: the command line."""

import sys

from hilboost.core.errors import MissingPackage
from hilboost.core.packages import required


def main() -> None:
    """Run the command line, or name the packages that it requires."""
    try:
        for package in ("typer", "rich"):
            required(package, "the command hilboost")
    except MissingPackage as error:
        sys.exit(f"error: {error}")
    from hilboost.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
