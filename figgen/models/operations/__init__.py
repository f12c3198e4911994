"""What a training step does on one device, operation by operation."""
