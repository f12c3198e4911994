"""Read tables of facts in TOML: every key is checked, every value has a unit and a source."""
