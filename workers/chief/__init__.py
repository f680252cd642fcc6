"""The chief of KerasTuner's distributed mode, played for scripts that know nothing of Trainyard."""
