"""Operations on the rows of nodes, one package for each device."""
