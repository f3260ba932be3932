"""Many machines: one memory on all of them, by a remote of the trail or by an archive."""
