"""Finds rows with which a model of unknown origin can be tried: of its data, of its sender, or made up."""
