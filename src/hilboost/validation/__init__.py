"""Input validation: inputs, targets, weights, feature names, and constraints."""
