"""Command line of hilboost: ``hilboost demo``, ``fit``, ``predict`` and ``warmup``."""
