"""Command-line interface of hilboost; ``hilboost --help`` lists the commands."""
