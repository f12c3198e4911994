"""FLOPs against bytes: rooflines."""
