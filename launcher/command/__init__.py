"""rdmarun's own process: its options, mpiexec, and the output that it passes on."""
