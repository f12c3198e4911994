"""Ranks: grids, groups, orders and placement."""
