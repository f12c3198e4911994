"""Work against bytes."""
