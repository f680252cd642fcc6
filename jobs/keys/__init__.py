"""The secret key, those of a rotation, and how running processes learn a new one."""
