"""The little of torchvision that Horovod's example scripts use, written for these tests.

Their data is generated, and their model is small: they are to run anywhere, and within seconds.
Floor: tests. Thread: any.
"""
