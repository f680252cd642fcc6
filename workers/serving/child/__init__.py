"""The model child process: loads a verified `.keras` file, compiles it and answers prediction requests."""
