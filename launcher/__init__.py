"""rdmarun: starts, supervises and ends the ranks of a job; the only place with MPI (mpi4py).

Floor: beside rdmacoll/, above nothing: nothing here imports torch (but store.py, a process of its
own) or the engine, so that a launch costs no torch import.
"""
