"""Naive twins of the loops over pairs of survival times."""

import numpy as np


def concordant_pairs(ends, event, rank, weight, tree, totals):
    time = -np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    totals[:] = 0.0
    for i in np.flatnonzero(event):
        for j in range(len(time)):
            if time[j] > time[i] or (time[j] == time[i] and not event[j]):
                pair = weight[i] * weight[j]
                totals[0] += pair * (rank[j] < rank[i])
                totals[1] += pair * (rank[j] == rank[i])
                totals[2] += pair


def row_products(values, matrix, result):
    result[:] = values @ matrix
