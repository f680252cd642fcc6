"""HTTP connections of both servers: limits of their heads, their times and their number."""
