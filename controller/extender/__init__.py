"""The scheduler extender of clusters without DRA; docs/dev/extender.md has its rules."""
