"""Reads user code in a process with limits. It parses the code, and never imports or executes it.

`reading` lists a version's `files`, the packages that it asks for, and its **entries**: the functions,
classes and scripts that Trainyard can use (`definitions`, `scripts`). `comparison` compares two versions, and
`highlighting` divides a file into styled **runs** of characters. A **budget** limits a step's CPU time.
"""
