"""Values and pure rules: card, mode, device, claim, quantity, names. Standard library only."""
