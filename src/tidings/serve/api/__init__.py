"""What programs ask: collections, search, threads, feeds, uploads, and what operators read and do."""
