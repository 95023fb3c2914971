"""Contracts, records, and errors that all packages share, one file for each noun."""
