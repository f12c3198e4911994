"""Reads jobs from launch scripts, configurations, and lines that the tools write."""
