"""Encoding of category codes as numbers that trees can order."""
