"""What is computed: passes over what is read together, and the shards that workers take."""
