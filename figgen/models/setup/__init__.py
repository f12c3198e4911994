"""A training job put together from shape, layout and options, checked and cut into stages."""
