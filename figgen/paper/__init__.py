"""Figures for papers and slides: the drawing on the page, redrawn by matplotlib.

Pages never need this room.  What is set is read from the SVG, mark by mark and label by label, so
that the two cannot differ in what they show, and an SVG feature that is not known here is an error.
"""
