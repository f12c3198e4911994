"""Described and published runs: reading records, laying them out, and predicting their steps."""
