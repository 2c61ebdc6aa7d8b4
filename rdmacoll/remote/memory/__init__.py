"""Tensors of other processes: exposed, opened, read, written, allocated and posted."""
