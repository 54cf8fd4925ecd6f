"""The driver's image for the tests and for `make image`; see docs/dev/image.md."""
