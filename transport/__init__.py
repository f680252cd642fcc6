"""HTTP connections to both servers: limits on their heads, their times and their number."""
