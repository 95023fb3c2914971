"""Reading of SVMlight files: one row a line, with its label, its query and its nonzero values."""

from pathlib import Path
from typing import TYPE_CHECKING

from hilboost.cli.errors import CliError

if TYPE_CHECKING:
    import pandas as pd

SVMLIGHT_SUFFIXES = frozenset({".svm", ".svmlight", ".libsvm"})
MOST_CELLS = 500_000_000


def read_svmlight(path: Path) -> "pd.DataFrame":
    """Read an SVMlight file.

    ``path``: lines such as ``2 qid:17 1:0.5 4:1``; ``qid`` may be missing.

    Returns pandas.DataFrame: the columns ``label``, ``qid`` if there are queries, and the numbers
    of the features, with zeros for values that are not in the file.
    """
    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    try:
        rows, label, query = load_svmlight_file(str(path), zero_based=False, query_id=True)
    except (ValueError, OverflowError) as error:
        raise CliError(f"'{path}' is not a valid SVMlight file: {error}.") from None
    n, d = rows.shape
    if n * d > MOST_CELLS:
        raise CliError(
            f"'{path}' has {n:,} rows and {d:,} features, too many for the command line; read it "
            "with sklearn.datasets.load_svmlight_file, and fit in Python."
        )
    frame = pd.DataFrame(rows.toarray(), columns=[str(k + 1) for k in range(d)])
    frame.insert(0, "label", label)
    if len(query) and query.any():
        frame.insert(1, "qid", query)
    return frame
