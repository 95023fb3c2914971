"""Base learners: histogram trees, kernel machines, and scikit-learn regressors."""
