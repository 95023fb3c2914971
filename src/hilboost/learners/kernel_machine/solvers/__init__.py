"""Linear systems of kernel machines: direct solvers, and preconditioned conjugate gradients."""
