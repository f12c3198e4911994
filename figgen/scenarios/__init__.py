"""What is asked about: a preset, a published run, or a model on sizes, made into typed things."""
