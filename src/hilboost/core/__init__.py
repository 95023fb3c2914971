"""Interfaces, records and errors shared by all packages, one file per noun."""
