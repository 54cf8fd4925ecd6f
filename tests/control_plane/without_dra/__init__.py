"""Tests of servers without DRA: all files of this folder share one control plane."""
