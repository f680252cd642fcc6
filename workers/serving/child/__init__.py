"""The model child, the only user of JAX here: loads a verified `.keras` file, compiles it, answers frames."""
