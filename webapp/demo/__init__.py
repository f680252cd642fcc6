"""The demo: a running installation, two people, and the whole flow on real data through public REST."""
