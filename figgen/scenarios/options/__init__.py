"""The table of options of a job, and the meaning of a preset, run, file or text of options."""
