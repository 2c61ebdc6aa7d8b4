"""Files at the job's servers: a tree of names in the job's Store, and bytes in tables.

    fsspec.open("rdma://runs/7/model.safetensors", "rb")

entry.py, tree.py and board.py have the names, contents.py the bytes; holds.py and holder.py keep
what is open or has no name yet; filesystem.py and opened.py are fsspec's face.
"""
