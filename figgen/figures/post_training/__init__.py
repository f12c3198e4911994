"""Post-training: what a step costs, what it holds, and published steps beside predicted ones."""
