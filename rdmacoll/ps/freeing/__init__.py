"""Which tables are no more, as processes and servers tell each other in the job's Store: drops.py
has the log of them. Of files' tables held.py says who needs them; collector.py frees the others.
"""
