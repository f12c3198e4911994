"""The table of options of a job, and what a preset, run, file or text of options means."""
