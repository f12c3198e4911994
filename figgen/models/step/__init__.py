"""What a training step takes: compute, messages, stage times and the timeline."""
