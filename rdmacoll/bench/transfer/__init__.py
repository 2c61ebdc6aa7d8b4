"""The command `rdmacoll bench transfer`: one tensor to a given place in another process.

options.py: the command line, without torch · command.py: starts the processes · run.py: what each
of them does · pair.py: two processes and a way · ways.py: all ways there are, each a file of its
own: rdma.py, flag.py, gloo.py, torch_rpc.py, grpc_calls.py · measure.py: rounds, times and CPU
seconds · result.py: all of it as data · table.py: for people.
"""
