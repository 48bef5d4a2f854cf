"""Plans as other tools write them: one file per target, found by walking this folder."""
