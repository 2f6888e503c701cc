"""A trio client of the server: typed methods, and subscriptions that outlive a connection."""
