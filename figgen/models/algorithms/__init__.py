"""Parallel algorithms, one at a time: what each sends, splits and can hide."""
