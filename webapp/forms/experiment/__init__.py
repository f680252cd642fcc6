"""The experiment form, described once: sections of fields, each at a pointer of the spec.

`schema` reads what the spec knows of a field (type, bounds, default), `sections` adds what people need
(label, help, order), `start` fills a new form in. A test holds the fields against the spec's.
"""
