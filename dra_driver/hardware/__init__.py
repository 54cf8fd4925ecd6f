"""The machine: PCI functions in sysfs, and what ``efsmi`` prints, joined by PCI address."""
