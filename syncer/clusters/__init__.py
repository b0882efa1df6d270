"""The only code that talks to an API server: connecting, requests, watches, discovery."""
