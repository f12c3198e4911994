"""The journey from one GPU to 512: its scoreboard, and its pictures."""
