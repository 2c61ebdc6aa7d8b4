"""The case of row_pace_cases.py that says which bits a training has come to.

Floor: tests. Thread: the workers'.
"""

from row_pace_cases import case_sync_has_the_bits_of_one_process

__all__ = ["case_sync_has_the_bits_of_one_process"]
