"""The search for a layout: the space, its memory and time as arrays, and failures."""
