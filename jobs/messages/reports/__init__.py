"""Defines the reports about models: the engine writes them as JSON artifacts, pages and REST read them."""
