"""The REST API under `/api/v1`: thin functions over `jobs.actions` and `jobs.queries`.

`webapp.api.site` builds it; each other module here is the router of one resource, or a part of the core.
"""
