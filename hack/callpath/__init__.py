"""The functions of the daemon that handle an object, from watch event to POST."""
