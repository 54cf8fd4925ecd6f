"""Dynamic Resource Allocation driver for Enflame GCU accelerators: the node side.

Read the packages in the order in which a claim travels::

    hardware → model (card, device) → agent (publish) → controller (allocate)
             → node (prepare, journal, CDI) → container
"""
