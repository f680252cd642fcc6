"""Tests of the prediction server: protocols without a model, then the whole server with tiny models."""
