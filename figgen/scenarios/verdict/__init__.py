"""Whether a measured speed is good: the prediction, similar published runs, and likely reasons."""
