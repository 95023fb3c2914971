"""Naive twin of :mod:`hilboost.engine.ops.cpu.joint_columns`: one row and column at a time."""

from tests.reference.fixed_point import in_64_bits


def accumulate_joint(joint, table, ordered, compact, part, is_first, sums, histogram):
    (rows, gradients), n_values, n_bins = ordered, table.n_values, table.n_bins
    for group in range(8 * part.first_word, min(8 * part.last_word, len(joint.n_codes))):
        for k in range(joint.starts[group], joint.starts[group + 1]):
            column = joint.columns[k]
            for b in (*range(n_values[column]), n_bins - 1):
                histogram[256 * column + b] = 0
            for i in range(part.begin, part.end):
                code = (int(joint.words[group // 8, rows[i]]) >> (8 * (group % 8))) & 255
                b = code // joint.strides[k] % joint.sizes[k]
                b = n_bins - 1 if b == n_values[column] else b
                histogram[256 * column + b] += in_64_bits(gradients[i], compact)
