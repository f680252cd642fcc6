"""Trains, evaluates and exports models with Keras and JAX. Independent of processes and the database.

A runner calls one function in `tasks`, with the task and a `report.Report`, its only connection to the
runner. `tasks` use `training`, which uses `compiled`, `evaluation`, `models` and `data`.

- **part**: the training, validation or test rows. `data` also calls bounded pieces of a file parts.
- **pipeline**, **features**: the conversion of table columns to a model's input (`workers.features`).
- **training**: epochs of one model. A trial has one or more **executions**, each of them one training.
- **step**: one batch. Its **mode** decides how many steps one call to a compiled program runs.
- **program**: a model's functions, compiled. Trainings that differ only in **traced hyperparameters**, which
  are arguments of the program, share it.
- **rival**: another execution in the same search, whose learning curve a pruner compares with.
"""
