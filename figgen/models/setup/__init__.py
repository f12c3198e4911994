"""Training jobs: shape, layout and options, checked and divided into pipeline stages."""
