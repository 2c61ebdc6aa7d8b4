"""`rdmacoll debug`: what the ranks of a job are doing, when nobody knows why it hangs. No torch.

dumps.py: a rank's flight recorder as values · ask.py: how to get it from the ranks of this host ·
other_hosts.py: and of others ·
processes.py: which job a process is of · diagnosis.py: who waits in what, who is missing ·
text.py: all of it for people · to_torch.py, timeline.py: for torch's analyser, for Perfetto ·
options.py, command.py: the command.
"""
