"""Selection of the rows that become basis vectors of a sparse kernel machine.

=================  ========================================================  ====================
name               how                                                       cost besides kernels
=================  ========================================================  ====================
forward            greedy, best gain in the objective (SY2006, eq. 18)       O(m D (D + κ))
information_gain   greedy, most information about the function (SWL2003)     O(m D²)
k_means            rows nearest to the centers of mini-batch k-means         one k-means
random             uniform                                                   O(m)
residual           in proportion to the weighted squares of the residual     O(m r)
rp_cholesky        randomly pivoted Cholesky, Chen et al. 2022               O(m D²), products
=================  ========================================================  ====================

The machine minimizes ``½ Σ_i w_i |y_i - f_i|² + ½ λ |f|²_H`` for m rows and D basis vectors.  An
integer weight is equivalent to repeating the row, except for ``random``.  Rows of weight zero are
never chosen.

SY2006: Sun & Yao, *A gradient-based forward greedy algorithm for sparse Gaussian process
regression*, 2006.  SWL2003: Seeger, Williams & Lawrence, *Fast forward selection to speed up sparse
Gaussian process regression*, AISTATS 2003.
"""
