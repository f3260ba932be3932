"""From a query to an ordered, checked list of hits: one step a module, one frozen type a step."""
