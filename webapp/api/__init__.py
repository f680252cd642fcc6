"""The REST API under `/api/v1`: operations that call `jobs.actions` and `jobs.queries`.

`webapp.api.site` builds the API. Each other module is the router of one resource or a shared helper.
"""
