"""From one format into another, shard by shard, in parallel."""
