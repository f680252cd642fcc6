"""Reads image archives: all headers first, then the pixels, in the size chosen from the headers."""
