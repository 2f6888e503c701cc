"""How bytes from sockets become WebSockets and HTTP requests that may be trusted."""
