"""TensorFlow Serving's REST API and the Open Inference Protocol, as pure functions on bytes and arrays.

`table` lists the protocols, and `protocol` declares what each has: **predictions**, which send inputs through
a model, and **views**, which describe the server or a model from the catalog (`catalog_view`). A **call** is
the parsed body of a prediction. `table_rows` and `oip_columns` read columns of tables.
"""
