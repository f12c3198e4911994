"""The table of a job's options, and how presets, runs, files and texts set them."""
