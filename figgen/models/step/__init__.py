"""The time of a training step: compute, messages, stage times and the timeline."""
