"""Compiled search for strings by their n-gram counts."""
