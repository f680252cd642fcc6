"""Prepares the tables and charts of the reports about models. The server draws the charts as SVG."""
