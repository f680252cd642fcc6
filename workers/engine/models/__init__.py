"""Builds, modifies, loads and saves Keras models.

`build` makes a model from a spec: a template's layers, then the `head`, its output. `code_models` does so
for user code, which `own_code` imports and `own_objects` finds for stored models. `untrusted` and
`size_limit` check a file from outside before it is loaded. `width_padding` makes models wider than
requested, so that trials share a compiled program. `keras_private` is the only module that uses private
parts of Keras.
"""
