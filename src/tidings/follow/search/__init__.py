"""The search: a tantivy index that follows the shelf."""
