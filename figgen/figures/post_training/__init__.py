"""Post-training: costs and memory of a step, and published steps with predictions."""
