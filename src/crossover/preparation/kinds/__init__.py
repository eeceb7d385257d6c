"""One module a kind of entry: `make(task)` writes the entry of a `preparation.prepare.Task` into its store."""
