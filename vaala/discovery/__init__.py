"""How a client and the server of a data directory find and prove each other."""
