"""Mutants: the programs with one small fault each, played to the tests; ``make mutants``.

A test suite is as good as the faults that it finds. Mutants are drawn from all folders of the
programs by a seed, so that two states of the suite can be compared by the same faults.
"""
