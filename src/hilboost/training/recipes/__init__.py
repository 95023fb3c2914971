"""Recipes by model family, built from an estimator's parameters and validated data."""
