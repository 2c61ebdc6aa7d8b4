"""The command `rdmacoll bench`: collectives measured side by side, in the manner of nccl-tests.

options.py, sizes.py: the command line · launch.py: starts the ranks, by rdmarun or by mpiexec ·
worker.py: a rank that is an MPI process · run.py: what every rank does · operations.py: what there
is to measure · case.py, values.py: its tensors and what must be in them afterwards · memory.py:
where tensors come from · torch_calls.py, mpi_calls.py: the systems · measure.py: rounds and times ·
machine.py, flag.cc: the limits beside · result.py: all of it as data · table.py, plot.py: for
people. The first three, operations.py and launch.py load no torch: a wrong command line is told at
once. transfer/, models/: commands of their own · frame/: what all of them have in common.
"""
