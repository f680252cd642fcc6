"""Everything that computes: supervisors, runners, the engine and the prediction server."""
