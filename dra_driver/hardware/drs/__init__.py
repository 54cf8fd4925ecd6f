"""DRS instances of a card: profiles, creation and destruction by ``efsmi``."""
