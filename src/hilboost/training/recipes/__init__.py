"""Recipes by family: from an estimator's parameters and checked data to what is trained."""
