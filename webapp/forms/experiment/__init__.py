"""The experiment form, described once: sections of fields, each at a pointer of the spec.

`schema` reads what the spec knows of a field (type, bounds, default); `learning`, `searching` and `running`
add what people need (label, help); `sections` puts the steps in order, `start` fills a new form in. A test
holds the fields against the spec's.
"""
