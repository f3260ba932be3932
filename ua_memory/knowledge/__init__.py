"""Operations on the records of a bank: facts, core memory, observations, opinions, pages, entities."""
