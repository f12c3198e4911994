"""What a training step computes on one device, operation by operation."""
