"""What may be served: signed releases, the bytes they name, and what we report back."""
