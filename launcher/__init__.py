"""rdmarun: starts, supervises and ends the ranks of a job; only this and rdmacoll/bench/ see MPI.

    rdmarun - mpiexec - per host: subreaper - agent - ranks, each with what it starts itself
                                             |---- the TCPStore (on host 0)

On one host there is no mpiexec, and nothing loads MPI. On several hosts, rdmarun also starts a key
holder on each, which runs until the agents have proved who they are.

With --preload the agent starts a process that imports, too, and that forks the ranks; they are the
agent's all the same.

Whichever of these is killed, those below it end: agent and subreaper adopt and kill orphans.
Floor: above rdmacoll/base and rdmacoll/info. Nothing here imports torch (but store.py, a process of
its own) or the engine, so that a launch waits for no import of torch.
"""
