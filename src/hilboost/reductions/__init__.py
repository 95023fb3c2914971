"""Sums, quantiles and draws over the rows of all workers.

A target knows the weights of its rows, and by ``share`` which rows of the table they are if other
workers have the others; ``None`` means all of them, and nothing is exchanged.
"""
