"""The only code that communicates with API servers: connections, requests, watches, discovery."""
