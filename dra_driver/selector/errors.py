"""Errors while a selector is evaluated; the CEL specification decides where they are absorbed."""

from __future__ import annotations


class EvaluationError(Exception):
    """CEL's runtime error. ``||``, ``&&``, ``all`` and ``exists`` may absorb it."""


class UnsupportedError(Exception):
    """The expression uses what this evaluator does not know. Never absorbed: an answer that
    leaves the unknown part out could be silently wrong."""
