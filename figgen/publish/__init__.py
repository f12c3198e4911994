"""What is published beside the pages, and what a published page says of itself."""
