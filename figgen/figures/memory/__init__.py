"""What has to fit into a GPU."""
