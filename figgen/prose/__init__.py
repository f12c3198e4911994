"""What is asked of the texts: rules, the lines that they read, premises, and counts."""
