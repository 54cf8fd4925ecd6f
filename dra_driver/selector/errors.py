"""Errors while a selector is compiled or evaluated; `Selectors` tells people of them."""

from __future__ import annotations


class EvaluationError(Exception):
    """CEL's runtime error. ``||``, ``&&``, ``all`` and ``exists`` may absorb it."""


class RefusedError(Exception):
    """The expression is not evaluated at all: it is malformed or ill-typed, uses what is not
    known here, or costs too much. Never absorbed, as an answer that leaves a part out could be
    silently wrong."""
