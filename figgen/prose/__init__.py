"""Check the prose of pages: rules, the lines that they apply to, premises, and counts."""
