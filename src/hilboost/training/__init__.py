"""Training: recipes, defaults, and the one function that fits a model."""
