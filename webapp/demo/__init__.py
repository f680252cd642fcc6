"""The demo: runs the whole workflow on real data through the REST API, with two users."""
