"""Versions of the package, and of what fits are continued by."""

__version__ = "0.2.0"

ROW_DRAWS = 2
"""Version of the random draws of rows, which increases when a seed draws other rows.

Stages of another version are not continued: they may be fitted to rows that are held out now.
"""
