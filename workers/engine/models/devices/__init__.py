"""Models on several devices: their arrays in parts, their files, and the devices of stored models."""
