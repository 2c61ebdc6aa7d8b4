"""Interfaces of torch over remote memory, found by its entry points."""
