"""The prediction server: protocols without a model, then the real thing with tiny models."""
