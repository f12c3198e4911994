"""The appendices: symbols, coverage, misprints."""
