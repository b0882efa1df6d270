"""One virtual cluster linked with the host: which syncers are at work, and what wakes them."""
