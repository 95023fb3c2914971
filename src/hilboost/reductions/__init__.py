"""Sums, quantiles and draws over the rows of all workers.

``share`` says which rows are here; ``None`` means all of them, and nothing is exchanged.
"""
