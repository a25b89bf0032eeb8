"""Fakes that keep a real contract: a clock, an engine."""
