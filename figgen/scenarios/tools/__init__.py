"""The data that the live tools load."""
