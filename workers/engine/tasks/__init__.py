"""What a runner does: one module for each kind of task."""
