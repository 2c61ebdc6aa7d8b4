"""What `rdmacoll info` and `rdmarun --check-build` know of this machine. Imports no torch.

device.py: RDMA devices as values · sysfs.py, with_pyverbs.py: two ways to find them · listing.py:
both as one list · advice.py: what is missing and how to get it · memlock.py: the limit on locked
memory · build.py: what is compiled in · report.py, text.py: all of it, as data and for people ·
peers.py: what the ranks of a job reach each other by.
"""
