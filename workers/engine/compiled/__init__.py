"""Compiles training steps, caches the programs and chooses the fastest way to run them.

`program` has one model's compiled functions (`model_functions`), and `vmapped` trains several models at once
with one of them. `cache_key` decides which trainings share a program. A program is compiled ahead of time
(`aot`) and stored in `cache`; under a `compile_lock` only one process compiles it. **Timing** compares two
ways to run the same steps (`autotune`, `timing_comparison`), and is stored in `timing_results`.
"""
