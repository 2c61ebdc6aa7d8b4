"""What the other modules of rdmacoll.ps stand on: it uses none of them."""
