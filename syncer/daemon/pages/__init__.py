"""What the process serves about itself: metrics, health, and the handlers of the control socket."""
