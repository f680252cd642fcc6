"""Trains models: epochs, early stopping, pruning, checkpoints and a trial's executions.

`prepare` makes a model and its batches, a `plan` defines one training of it, and `training` runs the plan:
for each epoch it calls a **loop** (`loops`, `program_loop`, `tree_loop`), validates, and runs its **hooks**.
A **snapshot** is a checkpoint's contents (`training_state`, `checkpoint`). `execution` trains one execution
of a trial, and `lockstep` all of them in turn. `own_code` and `own_fit` train models that user code builds,
and `trees` trains trees.
"""
