"""The agent, the program of a node: publishes its cards and answers the kubelet."""
