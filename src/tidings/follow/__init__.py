"""What is derived from the stream of changes: the search index, mirrors in other stores."""
