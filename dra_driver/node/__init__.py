"""The heart of the node side: ledger, journal, prepare and unprepare, CDI, recovery.

It knows neither gRPC nor which front calls it; everything outside comes through `ports`.
"""
