"""The command `rdmacoll plan`: which plan a collective takes on hosts that one does not have.

options.py: the command line · command.py: asks the compiled module and prints · facts.py: what
there is to show · least.py: the bytes that must leave a host · steps.py: a rank's plan, step by
step · flows.py: who sends how much to whom · roles.py: ranks that do the same, and what they do ·
words.py: the same in sentences · text.py: the answer for people · drawing.py: the picture. Nothing
but the extension loads torch, and nothing starts a rank.
"""
