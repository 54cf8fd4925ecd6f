"""What each ``efsmi`` command prints: pure functions from the machine's state to text.

The columns, keys and oddities are those of public dumps of real machines (S60, tool versions
1.2 to 1.7); docs/user/simulated-machine.md says which parts nobody outside has seen.
"""
