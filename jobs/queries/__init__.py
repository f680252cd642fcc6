"""Reads for pages and API: typed, prefetched, paged by key."""
