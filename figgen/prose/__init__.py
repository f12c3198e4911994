"""Checks of the pages' prose: rules, the lines that they read, premises, and counts."""
