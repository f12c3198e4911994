"""Whether a measured speed is good: the prediction, like published runs, and likely reasons."""
