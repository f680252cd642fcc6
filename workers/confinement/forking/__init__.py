"""Forks processes from one whose imports are done: `server` runs there, `client` asks for the forks."""
