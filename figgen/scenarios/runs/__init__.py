"""What a described or published run means: records read, laid out, predicted, calibrated."""
