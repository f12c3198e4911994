"""What a change of the repository does to what readers see: two builds, compared.

`sources` notes what a build was made from, `builds` reads or makes builds, `compare` finds what
differs, `causes` which input moved it, and `report` tells it. Builds are data that somebody else
may have made: nothing of them is trusted to be what it should be.
"""
