"""Pages generated from the registries and the catalog."""
