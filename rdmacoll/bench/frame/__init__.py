"""What the commands of rdmacoll bench have in common, whatever each of them measures.

job.py: around the measurement, in each process · rounds.py: who has a turn ·
interval.py: how sure a median is · grpc_ends.py, tensorpipe.py: two ends of gRPC, and torch.rpc ·
figure.py: a picture as a file.
"""
