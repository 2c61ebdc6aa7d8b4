"""What all parts of the package and the launcher use; it uses none of them."""
