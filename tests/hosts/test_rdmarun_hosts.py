"""rdmarun and torchrun over several hosts, with ranks that do not talk over backend "rdma".

Floor: tests.
"""
