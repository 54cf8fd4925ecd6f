"""Tests of groups of pods: all files of this folder share one control plane."""
