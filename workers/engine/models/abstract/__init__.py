"""Models without bytes for their variables: builds that JAX traces, for variables and estimates."""
