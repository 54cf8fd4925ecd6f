"""The annotations of pods that tools of the vendor's gcushare read."""
