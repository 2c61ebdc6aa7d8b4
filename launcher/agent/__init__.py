"""The agent of a host: it starts the ranks, supervises them, and answers them."""
