"""Compiled loops: plain functions over arrays and numbers, and the threads that run them.

Nothing here sees an object, a string option or a global random state.  Each compiled
function has a naive NumPy twin of the same name under ``tests/reference``.
"""
