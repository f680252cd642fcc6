"""Events and log lines of a run: read, checked, spooled and recorded."""
