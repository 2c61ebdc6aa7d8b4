"""What trains: optimizers and their gradients, what ranks begin with, and how they end."""
