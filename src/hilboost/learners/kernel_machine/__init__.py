"""Kernel machines with sparse, block or full stages."""
