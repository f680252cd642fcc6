#!/usr/bin/env python
"""Runs the program of this checkout, as `trainyard` runs an installed one."""

from webapp.__main__ import main

if __name__ == "__main__":
    main()
