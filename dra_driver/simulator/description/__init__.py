"""The description of a machine as a person writes it, up to the state in which it begins."""
