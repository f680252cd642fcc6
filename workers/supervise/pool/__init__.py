"""Runner processes: started, kept warm, forked and confined."""
