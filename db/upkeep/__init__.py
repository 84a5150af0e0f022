"""What keeps a store whole: checks, repair, merging, removal."""
