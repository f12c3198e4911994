"""What a rank holds in memory: parameters, state, activations and buffers."""
