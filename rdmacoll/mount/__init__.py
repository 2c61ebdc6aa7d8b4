"""`rdmacoll mount`: the job's files in a folder of this machine, by FUSE. fuse_ext/ has what the
kernel asks for, names.py what that asks of the job's Store, daemon.py the process.
"""
