"""The command `rdmacoll tune`: measures the algorithms on this machine and writes which to take.

options.py: the command line · command.py: starts the ranks, as `rdmacoll bench` does · run.py: what
every rank does, with bench's harness · choice.py: from times to rows · model.py: from times to
latency and bandwidth · links.py: from times to what links cost · tables.py: the file that
RDMACOLL_TUNING names, and the same for people. Only run.py, and what it imports, loads torch.
"""
