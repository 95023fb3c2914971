"""Training: recipes, defaults, and the function that fits all models."""
