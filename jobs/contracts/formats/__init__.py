"""Search spaces as other tools write them: read without loss, or refused with reason and place.

One module a format, each with a `looks_like` and a `read`; `importing` has the table. Keys that say how runs
are launched are left out with a note; whatever would change what is tried, how it is ranked or when the
search ends, and has no exact counterpart here, is refused.
"""
