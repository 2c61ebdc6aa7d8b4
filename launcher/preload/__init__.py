"""What runs in the process that imports for --preload; python starts it by this folder."""
