"""How HTTP is spoken: who may ask, what requests and replies look like, and how many there may be."""
