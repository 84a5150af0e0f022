"""What is computed: nodes, passes over what is read together, and the shards that workers take."""
