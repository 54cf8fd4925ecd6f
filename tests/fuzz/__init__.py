"""Hostile inputs to every parser: each either returns or raises a GcuError, soon, and writes
nothing outside of the folder that it was given. ``make fuzz`` runs a million for each parser.
"""
