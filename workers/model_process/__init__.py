"""What both sides of a model's process share: frames, types, checks, errors."""
