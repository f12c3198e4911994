"""Pages that are written from the registries and the catalog: nothing in them is typed."""
