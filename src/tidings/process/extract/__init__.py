"""Gets the readable part out of pages, in a child process that may be killed."""
