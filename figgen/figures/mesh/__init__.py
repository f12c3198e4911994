"""Which rank sits where: grids, groups, orders and placement."""
