"""`rdmacoll ps`: starts a server of a job by hand, and shows what servers do. No torch.

status.py: what is known of a job's servers, as values · listener.py: a server answers who asks ·
ask.py: asks the servers of this host · text.py: a status for people · by_hand.py: starts a server ·
reaching.py: waits for a Store · options.py, command.py: the command.
"""
