"""The life of an item in the database: born, claimed, settled, restarted, told in its journal."""
