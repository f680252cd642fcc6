"""The prediction server: a router without JAX in front of one child process per loaded model version.

`protocols` parses requests and encodes responses, `releases` determines the served versions, `versions`
manages the children and their queues, and `child` is the only package that imports Keras and JAX.

- **dashboard**: the web application, which approves versions, signs releases and checks callers' tokens.
- **release**: the versions of one model to serve, signed. Each has a higher **generation** than the last one.
- **endpoint**: a model's versions on this server. The **catalog** has all endpoints.
- **target**: the model, and perhaps version or label, that a request names.
- **supervisor**: here the program that started the server and restarts it, such as `manage.py up`.
- **table**: a version's pipeline, which turns table columns into the model's input (`table.ServedTable`).
- **direct path**: `direct_http` and `direct` answer usual predictions without ASGI; `app` answers the rest.

A prediction: `direct_http` or `asgi` reads the request, `auth` checks the token, a protocol parses the body,
the catalog picks the version, its `batcher` sends a batch to the child, and the protocol encodes the outputs.
"""
