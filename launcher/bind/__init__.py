"""rdmarun --bind: what cores a host has, and which of them each of its ranks gets."""
