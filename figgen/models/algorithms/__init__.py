"""Models of single parallel algorithms: the bytes they send, the work they split, and overlap."""
