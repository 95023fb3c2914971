"""Command line of hilboost: ``hilboost demo``, ``fit``, ``predict``, ``warmup``,
``reproduce``.
"""
