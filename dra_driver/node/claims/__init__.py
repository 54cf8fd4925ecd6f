"""Prepared claims: what prepare and unprepare do to cards, and what becomes of claims that fail."""
