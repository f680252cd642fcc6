"""The domain, without HTML and HTTP. `docs/map.md` lists its layers and wings.

Terms that many modules use:

- **job**: a unit of queued work with a **kind** (`jobs.kinds`), which defines its behaviour. A **root** is a
  job without a parent, such as a search. Its **steps** are the child jobs after it, such as retrainings.
- **attempt**: one try to run a job, or some trials of a search, on one worker. Its number is the **fencing
  token**, in short the fence: a write with an older number is refused.
- **lease**: a claim on a row that ends at a given time unless its holder renews it.
- **trial**: one configuration in a search. An **execution** is one training of a trial. A **rung** ends at an
  epoch at which trials are compared, and the best are **promoted** to the next rung.
- **spec**: the definition of an experiment. A **revision** is a stored spec, which never changes.
- **own code**, user code: uploaded files. They run only in a sandbox. A **dry build** builds the model of own
  code once, to read its hyperparameters.
- **chief**: the process that lets unmodified scripts outside Trainyard take part in an **external search**.
- **hint**: a message that something has changed. It is only faster than the next poll; the database decides.
- **champion**, **challenger**: a model's served version, and the version that may replace it. **Gates** are
  the checks before a **promotion** to an endpoint's stage.
"""
