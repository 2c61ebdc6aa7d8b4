"""The command `rdmacoll bench models`: models that workers train with a parameter holder.

options.py: the command line, without torch · command.py: starts the processes · run.py: what each
of them does · models.py: what is trained · flat.py: a model's parameters in one tensor ·
training.py: what a worker computes, and the holder · team.py: the processes of a way, and what
every way can do · ways.py: all ways there are, each a file of its own: rdma.py, grpc_way.py,
torch_rpc_way.py; gathering.py: what these two have at the holder · member.py: a process at a model
· measure.py: rounds, times and checks · result.py: all of it as data · table.py, plot.py: for
people.
"""
