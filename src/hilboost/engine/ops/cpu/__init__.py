"""Compiled loops that grow trees on binned rows, and walk them."""
