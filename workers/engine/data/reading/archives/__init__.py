"""Finds the tables in an upload: unpacks compressed files and archives, and writes workbooks as text."""
