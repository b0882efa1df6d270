"""Make the plan of a request. Pure, without any client."""
