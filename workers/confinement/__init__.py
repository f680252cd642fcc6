"""Runs code with limits: their own users, sandboxes, forks into them, installed packages.

- **user**: an id of the operating system that only one process has at a time.
- **isolation**: gives runners such users. **Access**: one user's rights on some folders and files.
- **sandbox**: the confinement of user code. Its **level** depends on the machine (`jobs.messages.sandbox`).
- **view**: the files and folders that a confined process sees.
- **plan**: the steps with which a process enters its sandbox. A **starter** carries out a plan, in a new
  interpreter or in a fork.
"""
