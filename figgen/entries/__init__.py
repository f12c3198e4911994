"""Tables of facts in TOML: every key checked, every value with its unit and source."""
