"""CDI files: one for each prepared claim, and the directory that the container runtime reads."""
