"""Prepares tables and charts for reports about models. The server draws the charts as SVG."""
