"""Workloads: the handlers and cases that drive the lanes."""
