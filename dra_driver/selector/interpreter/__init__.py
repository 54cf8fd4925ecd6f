"""Evaluating a checked syntax tree."""
