"""Base learners: histogram trees, and any scikit-learn regressor."""
