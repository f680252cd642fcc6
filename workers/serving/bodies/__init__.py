"""Parses and encodes bodies; large ones in worker processes, so that other requests do not wait for them.

`codec` decides where, `pool` has the **body workers**, and `worker` runs in one. They are no worker nodes.
A **packed** body is compressed. `memory` bounds what all bodies use together.
"""
