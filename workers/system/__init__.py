"""The ground of all programs of the workers: processes, kernel, limits and files of the machine."""
