"""Tests of servers that drop device taints: all files of this folder share one control plane."""
