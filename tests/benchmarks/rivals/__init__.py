"""Runs other open models of training time on the runs of the catalog: `make rivals`.

It needs an environment of its own with the rivals. Their answers are frozen in
`figgen/catalog/rivals.json`, which the site reads.
"""
