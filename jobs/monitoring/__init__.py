"""What each part tells of itself: its metrics, whether it is alive, and whether it can do its work."""
