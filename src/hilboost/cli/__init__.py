"""Command line of hilboost: ``hilboost --help`` lists the commands."""
