"""Other open models of training time on the runs of the catalog: `make rivals`.

It has an environment of its own, because it needs the rivals; what they answer is frozen in
`figgen/catalog/rivals.json`, which the site reads.
"""
