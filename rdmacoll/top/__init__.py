"""`rdmacoll top`: a job while it runs. No torch.

samples.py: two dumps of each rank, as rates, shares and delays · screen.py: these as a table ·
options.py, command.py: the command.
"""
