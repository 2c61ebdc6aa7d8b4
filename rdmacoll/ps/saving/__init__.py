"""Snapshots of tables on disk, and back."""
