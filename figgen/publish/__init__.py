"""What is published: one build from pages to files, finished HTML, scripts, twins and cards."""
