"""The log of each part: its lines, their ids, and what keeps secrets and floods out of them."""
