"""What is predicted beside what was measured."""
