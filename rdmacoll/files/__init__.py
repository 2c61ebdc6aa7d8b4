"""Files at the job's servers: a tree of names in the job's Store, and bytes in tables.

    fsspec.open("rdma://runs/7/model.safetensors", "rb")

Floors: entry.py, tree.py: names; contents.py: bytes; filesystem.py and opened.py: fsspec's face.
"""
