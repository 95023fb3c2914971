"""Kernel, length scales and λ of a fit, chosen from its first gradients."""
