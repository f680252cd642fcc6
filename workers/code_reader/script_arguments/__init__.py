"""Reads the arguments that scripts declare, by argparse and by other libraries."""
