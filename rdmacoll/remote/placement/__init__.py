"""Tensors that have a place at their receiver before they are sent: planned or learnt."""
